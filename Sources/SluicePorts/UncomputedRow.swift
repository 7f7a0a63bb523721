package import SluiceCore

/// A row from the WAL whose generated columns, which the WAL lacks, are not computed yet.
package struct UncomputedRow: Sendable {
    package var row: RowRef
    /// The number of the row's relation, by which the change source finds the columns to compute.
    package var relation: Int
    /// The texts of the columns that the generated ones depend on, in the order of the change source; nil for NULL.
    package var texts: [String?]

    package init(row: RowRef, relation: Int, texts: [String?]) {
        self.row = row
        self.relation = relation
        self.texts = texts
    }
}
