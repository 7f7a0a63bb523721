import SluiceCore
import SluicePipeline
import SluicePorts
import SluicePostgres
import SluiceQuery
import Synchronization

/// The app's schema on this gateway: numbered, with tables in PostgreSQL and topics in the log.
///
/// In development mode it grows by the clients' classes. Classes and properties are only ever appended, so indices stay valid. Reading it
/// takes a lock for an instant. Extending it waits for PostgreSQL and the log.
final class GatewaySchema: SchemaAuthority, LayoutProvider {
    private struct State {
        var app: AppSchema
        var partitions: [String: Int32] = [:]
    }

    private let state: Mutex<State>
    private let tables: GatewayTables
    private let log: any MessageLog
    private let topics: Topics
    /// Called with a schema before it takes effect. The rules must know its classes and queryable fields before any session does.
    private let tell: @Sendable (AppSchema) async throws -> Void
    /// Serializes extensions.
    private let growth = AsyncSerialQueue()

    /// The number of partitions of a new topic. It is fixed at creation, as changes are hashed by it.
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

    /// Numbers the properties, checks or creates the tables, publishes them, and creates the topics.
    ///
    /// - Parameter tell: Called with each later schema before it takes effect.
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

    /// The tables of the classes by name.
    var sqlTables: [String: SQLTable] { tables.sqlTables }

    func extend(by client: [ObjectType]) async throws -> AppSchema { try await extend(by: client, places: [:]) }

    /// Adds the classes that clients added on another gateway in development mode.
    func extend(as record: AppSchemaRecord) async throws { _ = try await extend(by: record.schema.types, places: record.tables) }

    /// - Parameter places: The tables of new classes, and the columns of new properties. They are used once everything has succeeded.
    private func extend(by client: [ObjectType], places: [String: AppConfiguration.Table]) async throws -> AppSchema {
        guard current().isDevelopment else { throw missing(client) }
        try SchemaName.check(client, beyond: current().schema)
        return try await growth.run {
            let before = self.current()
            let grown = self.merge(client, into: before.schema)
            guard grown != before.schema.types else { return before }
            if let type = self.topics.classOfEvents(in: grown) {
                throw SluiceError(
                    .invalidSchemaChange, "The class '\(type.name)' cannot be added while the gateway runs.",
                    fix: "Give it another name, or add it to the app directory and restart the gateway.")
            }
            let after = try await self.tables.restoring {
                let types = try await self.tables.prepare(grown, adding: places, create: true)
                // Before any session uses it: rows that a session waits for must follow the announcement in the WAL.
                try await self.tables.announce(Schema(types), fields: before.fields)
                var after = before
                after.schema = Schema(types)
                after.version += 1
                try await self.tell(after)
                self.state.withLock { [after] in $0.app = after }
                return after
            }
            _ = try await self.layout(of: after)
            return after
        }
    }

    /// Adds the additions of a schema that was applied elsewhere. Open sessions continue with their schema.
    ///
    /// - Throws: `breakingSchemaChange` if it removes something; nothing is adopted then.
    func adopt(_ record: AppSchemaRecord, version: UInt64) async throws {
        try await growth.run {
            let before = self.current()
            let present = AppSchemaRecord(schema: before.schema, tables: self.tables.places, fields: before.fields)
            let comparison = SchemaComparison(from: present, to: record)
            if let refusal = comparison.refusal(version: version - 1) { throw refusal }
            guard !comparison.changes.isEmpty else { return }
            if let type = self.topics.classOfEvents(in: record.schema.types) {
                throw SluiceError(
                    .breakingSchemaChange, "The topic \(self.topics.changes(of: type.name)) of the class \(type.name) has events of users.",
                    fix: "Delete the topic and restart every gateway with the app directory that has the class.")
            }
            try await self.tables.restoring {
                let grown = self.merge(record.schema.types, into: before.schema)
                let types = try await self.tables.prepare(grown, adding: record.tables, create: false)
                var after = before
                after.schema = Schema(types)
                after.fields = record.fields
                after.version += 1
                try await self.tell(after)
                // Topics exist before the schema takes effect, so a session never meets a class without one.
                _ = try await self.layout(of: after)
                self.state.withLock { [after] in $0.app = after }
            }
        }
    }

    /// Adds the classes, properties and queryable fields of an edited app directory, in development mode. Those that clients have added
    /// stay.
    ///
    /// - Parameter old: The directory before the edit.
    /// - Throws: `breakingSchemaChange` if the edit removes something, or differs from a class in use; nothing is added then.
    func adopt(_ app: AppConfiguration, after old: AppConfiguration) async throws {
        let (record, before) = (AppSchemaRecord(app), current())
        let present = AppSchemaRecord(schema: before.schema.limited(to: app.schema), tables: tables.places, fields: record.fields)
        for comparison in [
            SchemaComparison(from: AppSchemaRecord(old), to: record), SchemaComparison(from: present, to: record),
        ] {
            guard let first = comparison.breaking.first else { continue }
            throw SluiceError(
                .breakingSchemaChange, "\(first.text): \(first.breaks ?? "")", fix: "Restart sluice dev to begin with the edited directory."
            )
        }
        try await extend(as: record)
        var fields = record.fields.byType
        for type in app.schema.types where type.kind == .topLevel {
            fields[type.name, default: []].formUnion(record.fields.global.filter { type[$0] != nil })
        }
        _ = try await makeQueryable(fields)
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

    /// Returns the classes with the client's additions at the end.
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

    /// Returns the error that names the client's classes and properties missing on the server.
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
        return SluiceError(
            .invalidSchemaChange, "The app has classes or properties that the server lacks: \(names.joined(separator: ", ")).")
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

    /// Returns the partition count of a class's ingest topic, and creates the topic if it is missing.
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

extension Schema {
    /// Returns the classes and properties that another schema has, too.
    fileprivate func limited(to other: Schema) -> Schema {
        Schema(
            types.compactMap { type in
                guard let wanted = other[type.name] else { return nil }
                let properties = type.properties.filter { wanted[$0.name] != nil }
                let key = type.primaryKey.map { type.properties[$0].name }.flatMap { wanted[$0] == nil ? nil : $0 }
                return ObjectType(name: type.name, kind: type.kind, properties: properties, primaryKey: key)
            })
    }
}
