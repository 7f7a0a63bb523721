import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire

/// Builds a view from a subscription set: parsed, bound, checked, narrowed by the rules and restricted to readable rows.
struct ViewBuilder {
    let services: SessionServices
    let user: UserContext?
    let permissions: SessionPermissions
    /// The classes as the client declares them.
    let clientTypes: [ObjectType]
    /// The connection of the client. Its end ends the build.
    var channel: (any SessionChannel)?

    /// Builds a view.
    /// - Throws: a query error, which fails this version only; an error of the rules; `CancellationError` if the client is gone.
    func build(_ set: PBSubscribe) async throws -> View {
        try Self.checkSize(set)
        let schema = permissions.schema
        var predicates: [Int: Predicate] = [:]
        var wanted: [Int: Predicate] = [:]
        // Ask the rules first: a refused set must not cost any reading.
        let narrowing = try await narrow(try Self.questions(of: set, schema), schema.schema)
        var parts = MemberParts(cuts: narrowing.included)
        for (question, cut) in zip(narrowing.questions, narrowing.cuts) {
            if channel?.isClosed == true { throw CancellationError() }
            let (query, index) = (question.query, question.type)
            let type = schema.schema.types[index]
            // Unreadable fields are null in the user's queries too: the set of matching rows must not reveal their values.
            let asked = question.predicate.hiding(permissions[type.name].hidden(of: type))
            let whole = Predicate.and(asked, cut)
            guard MemberQuery.isNeeded(query) else {
                predicates.join(whole, index)
                wanted.join(asked, index)
                continue
            }
            let allowed = try permissions.read(type)
            let members = try MemberQuery(
                query, type: index, predicate: .and(whole, allowed), schema: schema.schema,
                hidden: { type in permissions[type.name].hidden(of: type) },
                readable: resolver(schema.schema, narrowing.included.merging(narrowing.passed) { included, _ in included }).readable)
            try await parts.add(members, whole, resolver(schema.schema, narrowing.included), schema.schema)
        }
        // An object of a plain query stays writable even if a limited query of its class leaves it out.
        for (index, predicate) in predicates where parts.writable[index] != nil {
            parts.writable[index]?.join(.and(predicate, try resolver(schema.schema, narrowing.included).readable(index)))
        }
        // Only now, so that the loop above sees the predicates of plain queries alone.
        for part in parts.readable {
            predicates.join(part.predicate, part.type)
            wanted.join(part.wanted, part.type)
        }
        let layout = try await services.layout.layout(of: schema)
        var partitions: Set<LogPartition> = []
        let types = try predicates.sorted { $0.key < $1.key }.map { index, predicate in
            let type = schema.schema.types[index]
            let view = try typeView(index, type, predicate, wanted: wanted[index] ?? predicate)
            let entries = view.predicate.indexForm(indexedProperty: schema.fields.indexedProperty(of: type))
            // Indexed keys limit the partitions to read. Without them the class is read in full.
            partitions.formUnion(layout.partitions(of: index, keys: keys(of: entries)))
            return view
        }
        let watched = parts.watched.sorted { $0.key < $1.key }.map { index, predicate in
            let entries = predicate.indexForm(indexedProperty: schema.fields.indexedProperty(of: schema.schema.types[index]))
            partitions.formUnion(layout.partitions(of: index, keys: keys(of: entries)))
            // Watched objects are never sent, so they need neither mask nor form.
            return TypeView(type: index, predicate: predicate, mask: nil)
        }
        var view = View(
            version: set.version, types: types, partitions: partitions.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) },
            writable: parts.writable, watched: watched)
        view.ruling = PermissionSnapshot(plan: permissions.plan, cuts: narrowing.texts)
        return view
    }

    private func resolver(_ schema: Schema, _ cuts: [Int: Predicate]) -> MemberResolver {
        let permissions = permissions
        return MemberResolver(
            snapshots: services.snapshots, fanout: services.fanout, environment: services.environment, schema: schema, channel: channel
        ) { index throws(SluiceError) in
            let readable = try permissions.read(schema.types[index])
            return cuts[index].map { .and(readable, $0) } ?? readable
        }
    }

    private func typeView(_ index: Int, _ type: ObjectType, _ predicate: Predicate, wanted: Predicate) throws -> TypeView {
        let allowed = permissions[type.name]
        let readable = Predicate.and(predicate, try permissions.read(type))
        let mask = allowed.fields.readable.map { _ in
            let hidden = allowed.hidden(of: type)
            return type.properties.indices.map { !hidden.contains($0) }
        }
        // Kept only if the rules narrow the query: it identifies a later leave as lost permission.
        let asked = readable == wanted ? nil : wanted
        return TypeView(type: index, predicate: readable, mask: mask, form: try form(of: type, mask), asked: asked)
    }

    /// Hashes the properties that the client receives of a class. A changed hash invalidates the client's known rows.
    private func form(of type: ObjectType, _ mask: [Bool]?) throws -> Fingerprint {
        var form = Fingerprint(try services.snapshots.source(of: type))
        let client = clientTypes.first { $0.name == type.name }
        for (index, property) in type.properties.enumerated() {
            let isSent = mask?[index] ?? true
            let isWanted = client.map { $0.properties.isEmpty || $0[property.name] != nil } ?? true
            form.add("\(property.id) \(property.typeText) \(isSent) \(isWanted)")
        }
        return form
    }

    /// Returns the indexed keys of the entries; nil if an entry reads all keys.
    private func keys(of entries: [IndexEntry]) -> Set<Value>? {
        var keys: Set<Value> = []
        for entry in entries {
            guard let key = entry.key else { return nil }
            keys.insert(key)
        }
        return keys
    }

    /// The contribution of a set's member queries to its view.
    private struct MemberParts {
        /// The rules' restrictions on included classes.
        let cuts: [Int: Predicate]
        /// The parts of the view. `wanted` is the predicate without the rules' restriction.
        var readable: [(type: Int, predicate: Predicate, wanted: Predicate)] = []
        var writable: [Int: Predicate] = [:]
        var watched: [Int: Predicate] = [:]

        mutating func add(_ query: MemberQuery, _ whole: Predicate, _ resolver: MemberResolver, _ schema: Schema) async throws {
            let members = try await resolver.resolve(query)
            writable.join(query.predicate, query.type)
            // The keys are ANDed to the query, so that a member that ceases to match leaves at once.
            let own = try members.own.map { Predicate.and(whole, try MemberResolver.keys($0, of: schema.types[query.type])) }
            readable.append((query.type, own ?? whole, own ?? whole))
            for (type, keys) in members.included.sorted(by: { $0.key < $1.key }) {
                let predicate = try MemberResolver.keys(keys, of: schema.types[type])
                readable.append((type, cuts[type].map { .and(predicate, $0) } ?? predicate, predicate))
                writable.join(.and(predicate, try resolver.readable(type)), type)
            }
            for part in members.watched { watched.join(part.predicate, part.type) }
        }
    }

    /// A checked query of the set.
    private struct Question {
        var query: PBQuery
        var type: Int
        var predicate: Predicate
    }

    /// Returns the index of the query that an error of `build` rejects; nil if the error is of the whole set.
    static func firstRejected(of set: PBSubscribe, _ schema: AppSchema, _ error: SluiceError) -> Int? {
        // A set beyond the bounds is not parsed.
        guard error.code.isQueryError, (try? checkSize(set)) != nil else { return nil }
        return set.queries.firstIndex { query in
            do {
                let question = try check(query, schema)
                _ = try MemberQuery.classes(query, from: question.type, schema.schema)
                _ = try MemberChoice.classes(query, from: question.type, schema.schema)
                return false
            } catch { return true }
        }
    }

    private static func checkSize(_ set: PBSubscribe) throws(SluiceError) {
        try MemberQuery.checkSize(ofSet: set.queries)
        try Subscription.checkSize(ofSet: set.queries.lazy.map(\.text))
    }

    private static func questions(of set: PBSubscribe, _ schema: AppSchema) throws -> [Question] {
        try set.queries.map { try check($0, schema) }
    }

    private static func check(_ query: PBQuery, _ schema: AppSchema) throws -> Question {
        guard let index = schema.schema.index(of: query.type) else {
            throw SluiceError(
                .querySubscribedTypeUnknown, "The subscription set names class \(query.type), which the server does not have.")
        }
        let parsed = try Query.parse(query.text)
        let predicate = try Subscription.check(
            type: schema.schema.types[index], query: parsed, in: schema.schema, fields: schema.fields)
        return Question(query: query, type: index, predicate: predicate)
    }

    /// The restriction of a set by the rules.
    private struct Narrowing {
        var questions: [Question]
        /// The restriction of each question.
        var cuts: [Predicate]
        /// The restrictions of the included classes.
        var included: [Int: Predicate] = [:]
        /// The restrictions of the other classes that the orders of limits pass through.
        var passed: [Int: Predicate] = [:]
        /// A hash of the rules' texts.
        var texts = Fingerprint()
    }

    private func narrow(_ questions: [Question], _ schema: Schema) async throws -> Narrowing {
        func cut(_ text: String, _ type: Int) throws -> Predicate {
            try SessionPermissions.bind(text, on: schema.types[type], in: schema)
        }
        guard let user, !questions.isEmpty else {
            return Narrowing(questions: questions, cuts: questions.map { .true(schema.types[$0.type]) })
        }
        let inquiry = try Self.inquiry(questions, schema)
        let texts = try await services.rules.checkSubscription(user: user, queries: inquiry.all)
        var narrowing = Narrowing(questions: questions, cuts: try zip(texts, questions).map { try cut($0, $1.type) })
        // The answers follow the order of the inquiry: queries first, then included classes, then classes of orders.
        let linked = texts.dropFirst(questions.count)
        for (text, type) in zip(linked, inquiry.included) { narrowing.included[type] = try cut(text, type) }
        for (text, type) in zip(linked.dropFirst(inquiry.included.count), inquiry.passed) { narrowing.passed[type] = try cut(text, type) }
        for text in texts { narrowing.texts.add(text) }
        return narrowing
    }

    private static func inquiry(_ questions: [Question], _ schema: Schema) throws -> Inquiry {
        let included = try questions.reduce(into: Set<Int>()) { classes, question in
            classes.formUnion(try MemberQuery.classes(question.query, from: question.type, schema))
        }
        let passed = try questions.reduce(into: Set<Int>()) { classes, question in
            classes.formUnion(try MemberChoice.classes(question.query, from: question.type, schema))
        }.subtracting(included)
        let asked = questions.map { (type: schema.types[$0.type].name, query: $0.predicate.canonicalText) }
        let linked = included.sorted() + passed.sorted()
        return Inquiry(
            all: asked + linked.map { (type: schema.types[$0].name, query: "TRUEPREDICATE") }, included: included.sorted(),
            passed: passed.sorted())
    }

    /// Returns the questions to the rules about a set.
    /// - Throws: a query error if the set does not fit the schema.
    static func inquiry(about set: PBSubscribe, _ schema: AppSchema) throws -> Inquiry {
        try inquiry(try questions(of: set, schema), schema.schema)
    }

    /// Returns the fields of a set that are not queryable, by class.
    static func unqueryable(_ set: PBSubscribe, _ schema: AppSchema) throws -> [String: Set<String>] {
        try checkSize(set)
        var missing: [String: Set<String>] = [:]
        for query in set.queries {
            guard let type = schema.schema[query.type] else { continue }
            let bound = try Query.parse(query.text).predicate(on: type, in: schema.schema)
            let names = bound.properties.map { type.properties[$0].name }.filter { !schema.fields.contains($0, of: type.name) }
            missing[type.name, default: []].formUnion(names)
        }
        return missing.filter { !$0.value.isEmpty }
    }
}

/// The questions to the rules about a set: each query, then each linked class as a whole.
///
/// A class is linked if its objects are included, or if the order of a limit passes through it. Its objects are as good as subscribed.
struct Inquiry {
    var all: [(type: String, query: String)]
    /// The included classes, which follow the queries in `all`, by index in the schema.
    var included: [Int]
    /// The classes at the end of `all` that only orders pass through, by index in the schema.
    var passed: [Int]
}

extension Dictionary where Key == Int, Value == Predicate {
    /// Widens the predicate of a class.
    fileprivate mutating func join(_ predicate: Predicate, _ type: Int) {
        self[type] = self[type].map { .or($0, predicate) } ?? predicate
    }
}

extension Predicate {
    fileprivate mutating func join(_ other: Predicate) { self = .or(self, other) }
}
