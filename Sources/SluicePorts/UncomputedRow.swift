package import SluiceCore

/// A row from the WAL whose generated columns, which the WAL lacks, are not computed yet.
package struct UncomputedRow: Sendable {
    package var row: RowRef
    /// The index of the class in the schema.
    package var type: Int32
    /// The texts of the columns that the generated ones depend on, in the order of the change source; nil for NULL.
    package var texts: [String?]

    package init(row: RowRef, type: Int32, texts: [String?]) {
        self.row = row
        self.type = type
        self.texts = texts
    }
}
