import SluiceCore
import SluicePipeline
import SluicePostgres
import Synchronization

/// The app's schema as this gateway works with it: numbered, with tables in PostgreSQL and topics in the log.
///
/// In development mode it grows by what clients bring (DEV-1, QF-4); types and properties are only ever added at the end,
/// so indices stay right. Reading it takes a lock for an instant; growing it waits for PostgreSQL and the log.
final class GatewaySchema: SchemaAuthority, LayoutProvider {
    private struct State {
        var app: AppSchema
        var partitions: [String: Int32] = [:]
    }

    private let state: Mutex<State>
    private let tables: GatewayTables
    private let log: any MessageLog
    private let topics: Topics
    /// Called with what is about to be in force: the rules have to know a class, and that a field is queryable, before any session does.
    private let tell: @Sendable (AppSchema) async throws -> Void
    /// One growth at a time.
    private let growth = OneAfterAnother()

    /// Partitions of a new topic (DESIGN section 3).
    static let partitionsPerTopic: Int32 = 16

    private init(
        _ app: AppSchema, tables: GatewayTables, log: any MessageLog, topics: Topics,
        tell: @escaping @Sendable (AppSchema) async throws -> Void
    ) {
        state = Mutex(State(app: app))
        self.tables = tables
        self.log = log
        self.topics = topics
        self.tell = tell
    }

    /// Numbers the properties, checks or makes the tables, publishes them, and makes the topics.
    /// - Parameter tell: called with what comes later, before it is in force.
    static func open(
        _ schema: Schema, fields: QueryableFields, isDevelopment: Bool, tables: GatewayTables, log: any MessageLog, topics: Topics,
        tell: @escaping @Sendable (AppSchema) async throws -> Void
    ) async throws -> GatewaySchema {
        let numbered = Schema(try await tables.prepare(schema.types, create: isDevelopment))
        if isDevelopment { try await tables.announce(numbered, fields: fields) }
        let app = AppSchema(version: 1, schema: numbered, fields: fields, isDevelopment: isDevelopment)
        let gateway = GatewaySchema(app, tables: tables, log: log, topics: topics, tell: tell)
        _ = try await log.prepare([TopicSpec(name: topics.progress, partitions: 1)])
        _ = try await gateway.layout(of: app)
        return gateway
    }

    func current() -> AppSchema { state.withLock(\.app) }

    func extend(by client: [ObjectType]) async throws -> AppSchema {
        guard current().isDevelopment else { throw missing(client) }
        try SchemaName.check(client, beyond: current().schema)
        return try await growth.run {
            let before = self.current()
            let grown = self.merge(client, into: before.schema)
            guard grown != before.schema.types else { return before }
            let types = try await self.tables.prepare(grown, create: true)
            // Before any session works with it: rows that one waits for come after the announcement.
            try await self.tables.announce(Schema(types), fields: before.fields)
            var after = before
            after.schema = Schema(types)
            after.version += 1
            try await self.tell(after)
            self.state.withLock { [after] in $0.app = after }
            _ = try await self.layout(of: after)
            return after
        }
    }

    /// Grows by what clients brought to another gateway in development.
    func extend(as record: AppSchemaRecord) async throws {
        tables.add(record.tables)
        _ = try await extend(by: record.schema.types)
    }

    /// Takes up what a schema that was applied meanwhile adds; sessions that are open go on with what they have.
    ///
    /// - Throws: `breakingSchemaChange` when it takes something away; nothing is taken up then.
    func adopt(_ record: AppSchemaRecord, version: UInt64) async throws {
        try await growth.run {
            let before = self.current()
            let present = AppSchemaRecord(schema: before.schema, tables: self.tables.places, fields: before.fields)
            let comparison = SchemaComparison(from: present, to: record)
            if let refusal = comparison.refusal(version: version - 1) { throw refusal }
            guard !comparison.changes.isEmpty else { return }
            self.tables.add(record.tables)
            let types = try await self.tables.prepare(self.merge(record.schema.types, into: before.schema), create: false)
            var after = before
            after.schema = Schema(types)
            after.fields = record.fields
            after.version += 1
            try await self.tell(after)
            _ = try await self.layout(of: after)
            self.state.withLock { $0.app = after }
        }
    }

    func makeQueryable(_ fields: [String: Set<String>]) async throws -> AppSchema {
        for (type, names) in fields {
            guard let name = names.sorted().first(where: QueryableFields.isReserved) else { continue }
            throw SluiceError(
                .queryNotQueryable, "'\(name)' of \(type) cannot become queryable: it is a word of the query language.",
                fix: "Rename the field, or filter by it locally.")
        }
        return try await growth.run {
            let before = self.current()
            var after = before
            for (type, names) in fields { after.fields.byType[type, default: []].formUnion(names) }
            guard after.fields != before.fields else { return before }
            try await self.tell(after)
            self.state.withLock { [after] in $0.app = after }
            return after
        }
    }

    /// The types with what the client adds, at the end.
    private func merge(_ client: [ObjectType], into schema: Schema) -> [ObjectType] {
        var types = schema.types
        for type in client {
            guard let index = types.firstIndex(where: { $0.name == type.name }) else {
                types.append(type)
                continue
            }
            let known = types[index]
            let new = type.properties.filter { known[$0.name] == nil }
            guard !new.isEmpty else { continue }
            types[index] = ObjectType(
                name: known.name, kind: known.kind, properties: known.properties + new,
                primaryKey: known.primaryKey.map { known.properties[$0].name })
        }
        return types
    }

    /// What a client has that the server has not (SCH-11).
    private func missing(_ client: [ObjectType]) -> SluiceError {
        let schema = current().schema
        var names: [String] = []
        for type in client {
            guard let known = schema[type.name] else {
                names.append("class \(type.name)")
                continue
            }
            names += type.properties.filter { known[$0.name] == nil }.map { "property \(type.name).\($0.name)" }
        }
        return SluiceError(.invalidSchemaChange, "The app has what the server has not: \(names.joined(separator: ", ")).")
    }

    // MARK: Topics

    func layout(of schema: AppSchema) async throws -> Partitioning {
        let known = state.withLock(\.partitions)
        let new = Partitioning.readable(schema.schema).map(\.name).filter { known[$0] == nil }
        if !new.isEmpty {
            let specs = new.map { TopicSpec(name: topics.changes(of: $0), partitions: Self.partitionsPerTopic) }
            try await learn(new, specs)
        }
        return Partitioning(schema: schema, topics: topics, partitions: state.withLock(\.partitions))
    }

    /// The partitions of a type's ingest topic, which is made when it is not there.
    func ingestPartitions(of type: String) async throws -> Int32 {
        let name = topics.ingest(of: type)
        if let known = state.withLock({ $0.partitions[name] }) { return known }
        try await learn([name], [TopicSpec(name: name, partitions: Self.partitionsPerTopic)])
        return state.withLock { $0.partitions[name] } ?? Self.partitionsPerTopic
    }

    private func learn(_ names: [String], _ specs: [TopicSpec]) async throws {
        let counts = try await log.prepare(specs)
        state.withLock { state in
            for (name, count) in zip(names, counts) { state.partitions[name] = count }
        }
    }
}
