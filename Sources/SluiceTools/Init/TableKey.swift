import SluiceCore
import SluicePostgres

/// The choice of the column that becomes `_id`.
enum TableKey {
    /// Returns the column: the primary key if it is one column of a fitting type, otherwise a unique column that PostgreSQL fills.
    ///
    /// In a partitioned table, a column of the primary key is enough if it has a unique index of its own on each partition.
    ///
    /// A unique column that users fill, such as an e-mail address, is not taken: the key of an object cannot change.
    static func column(of relation: DatabaseSurvey.Relation) -> DatabaseSurvey.Column? {
        let single = relation.keys.filter { $0.columns.count == 1 }
        let primary = single.first(where: \.isPrimary).flatMap { relation.column($0.columns[0]) }
        if let primary, DraftTypes.canBeKey(primary) { return primary }
        let others = single.filter { !$0.isPrimary }.map { $0.columns[0] }
        let parts = relation.keys.first(where: \.isPrimary)?.columns ?? []
        if let part = relation.uniqueInPartitions.first(where: parts.contains).flatMap(relation.column), DraftTypes.canBeKey(part) {
            return part
        }
        return others.lazy.compactMap(relation.column).first { DraftTypes.canBeKey($0) && $0.hasValue }
    }

    /// Returns the reason why a table has no key, with the statement that adds one.
    static func refusal(of relation: DatabaseSurvey.Relation) -> TableDraft.Refusal {
        let primary = relation.keys.first(where: \.isPrimary)
        let reason =
            if let primary, primary.columns.count > 1 {
                "Its primary key has several columns (\(primary.columns.joined(separator: ", "))), and an object has one key."
            } else if let primary, let column = relation.column(primary.columns[0]) {
                "Its primary key “\(column.name)” is of type \(column.declared). A key is an integer, a text or a uuid."
            } else {
                "It has no primary key."
            }
        if relation.kind == .partitioned { return partitioned(relation, reason) }
        let isTaken = relation.column("_id") != nil
        let name = isTaken ? free(relation) : "_id"
        let statement =
            "ALTER TABLE \(relation.sqlName) ADD COLUMN \(name) uuid NOT NULL DEFAULT gen_random_uuid() "
            + (primary == nil ? "PRIMARY KEY" : "UNIQUE")
        return .init(
            omission: .init(table: relation.displayName, reason: "\(reason) The statement writes every row once.", statement: statement))
    }

    private static func partitioned(_ relation: DatabaseSurvey.Relation, _ reason: String) -> TableDraft.Refusal {
        .init(
            omission: .init(
                table: relation.displayName,
                reason:
                    "\(reason) Let one of them have a unique index on each partition: CREATE UNIQUE INDEX ON the partition (the column)."))
    }

    private static func free(_ relation: DatabaseSurvey.Relation) -> String {
        for number in 2... where relation.column("_id\(number)") == nil { return "_id\(number)" }
        return "_id"
    }
}

/// The relations that have no class, whatever their columns are.
enum TableRefusal {
    static func refusal(of relation: DatabaseSurvey.Relation) -> TableDraft.Refusal? {
        reason(relation).map { .init(omission: .init(table: relation.displayName, reason: $0, statement: statement(relation))) }
    }

    private static func reason(_ relation: DatabaseSurvey.Relation) -> String? {
        if let owner = relation.owner { return "It belongs to the extension \(owner)." }
        switch relation.kind {
        case .view: return "It is a view, whose changes PostgreSQL does not log. Synchronise the tables that it reads."
        case .materializedView:
            return "It is a materialized view, whose changes PostgreSQL does not log. Synchronise the tables that it reads."
        case .foreignTable: return "It is a foreign table, whose changes another server has."
        case .table, .partitioned: break
        }
        if relation.isUnlogged { return "It is unlogged, so its changes are not in the WAL." }
        if relation.hasChildren { return "Other tables inherit from it, and the WAL has their rows under their own names." }
        for name in [relation.schema, relation.name] where name.hasPrefix(".") || name.contains("/") || name == "node_modules" {
            return "The name '\(name)' cannot be a folder of the app directory. Rename it."
        }
        return nil
    }

    private static func statement(_ relation: DatabaseSurvey.Relation) -> String? {
        relation.owner == nil && relation.kind == .table && relation.isUnlogged ? "ALTER TABLE \(relation.sqlName) SET LOGGED" : nil
    }
}
