import SluiceCore
package import SluiceGateway
package import SluicePostgres

/// An app directory for the tables of a database: the decisions of `sluice init`.
package struct AppDraft: Sendable {
    /// The maximum number of queryable fields that a class gets. Each costs the gateway memory for its subscriptions.
    package static let mostQueryableFields = 16

    /// A table or column that has no counterpart in the directory.
    package struct Omission: Hashable, Sendable {
        /// The table for people.
        package var table: String
        /// The column; nil for the whole table.
        package var column: String?
        /// One or two sentences.
        package var reason: String
        /// A statement after which `sluice init` includes it; nil if none does.
        package var statement: String?
    }

    /// A fact that the operator should know about a table that is included.
    package struct Note: Hashable, Sendable {
        package var table: String
        package var text: String
        /// A statement that changes the fact; nil if none is needed.
        package var statement: String?
    }

    /// The classes, tables and queryable fields.
    package private(set) var record = AppSchemaRecord(schema: Schema([]), tables: [:], fields: QueryableFields())
    package private(set) var omissions: [Omission] = []
    package private(set) var notes: [Note] = []
    /// The fields that could be the indexed queryable field, with the number of classes that have each. The most frequent is first.
    package private(set) var indexCandidates: [(field: String, classes: Int)] = []

    /// Drafts the directory. It decides everything by the survey, and the names of classes by the files that exist as well.
    package init(_ survey: DatabaseSurvey, known: KnownClasses = KnownClasses([:])) {
        var drafts: [TableDraft] = []
        for relation in survey.relations {
            switch TableDraft.read(relation) {
            case .success(let draft): drafts.append(draft)
            case .failure(let refusal): omissions.append(refusal.omission)
            }
        }
        let names = DraftNames.classes(of: drafts.map { Place($0.relation.schema, $0.relation.name) }, known)
        for index in drafts.indices { drafts[index].name = names[index] }
        let targets = Dictionary(drafts.map { (Place($0.relation.schema, $0.relation.name), $0) }) { first, _ in first }
        for index in drafts.indices { drafts[index].link(targets) }
        include(drafts)
    }

    /// A table's place, as a key of dictionaries.
    struct Place: Hashable {
        var schema: String
        var table: String

        init(_ schema: String, _ table: String) {
            self.schema = schema
            self.table = table
        }
    }

    private mutating func include(_ drafts: [TableDraft]) {
        var fields = QueryableFields()
        var tables: [String: AppConfiguration.Table] = [:]
        for draft in drafts {
            tables[draft.name] = .init(schema: draft.relation.schema, name: draft.relation.name, columns: draft.mapping)
            let queryable = draft.queryable
            if !queryable.isEmpty { fields.byType[draft.name] = Set(queryable.prefix(Self.mostQueryableFields)) }
            omissions += draft.omissions
            notes += draft.notes
            if queryable.count > Self.mostQueryableFields {
                notes.append(
                    Note(
                        table: draft.relation.displayName,
                        text: "It has \(queryable.count) columns with an index or a foreign key. Only the first "
                            + "\(Self.mostQueryableFields) are queryable; others may be added in sync/config.json."))
            }
        }
        record = AppSchemaRecord(
            schema: Schema(drafts.map { ObjectType(name: $0.name, properties: $0.properties) }), tables: tables, fields: fields)
        indexCandidates = Self.candidates(record)
    }

    /// Returns the fields that may be the indexed queryable field: queryable in two classes or more, and of one type in each class that has
    /// them.
    private static func candidates(_ record: AppSchemaRecord) -> [(field: String, classes: Int)] {
        var counts: [String: Int] = [:]
        for names in record.fields.byType.values { for name in names { counts[name, default: 0] += 1 } }
        var types: [String: Set<PropertyType>] = [:]
        for type in record.schema.types {
            for property in type.properties where (counts[property.name] ?? 0) > 1 {
                types[property.name, default: []].insert(property.collection == .none ? property.type : .mixed)
            }
        }
        let fit = types.filter { $0.value.count == 1 && !$0.value.isDisjoint(with: [.int, .string, .objectId, .uuid]) }.keys
        return fit.map { ($0, counts[$0] ?? 0) }.sorted { ($1.classes, $0.field) < ($0.classes, $1.field) }
    }
}
