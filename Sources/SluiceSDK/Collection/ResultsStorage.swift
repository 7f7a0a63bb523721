import Foundation
import SluiceCore
import SluiceQuery
import SluiceReplica

/// The source of the elements of results.
enum CollectionOrigin {
    /// All objects of a class.
    /// The class's index in the file.
    case table(Int)
    /// The elements of a list, set or map.
    case place(_Place)
    /// The objects of a class that link to an object by a property.
    case links(owner: ObjectBase, type: Int, property: Int)
}

/// The kind of a collection's elements.
enum ElementKind {
    case objects(type: Int)
    case embedded(ModelSchema)
    case values(SluiceCore.PropertyType)

    static func of<E: RealmCollectionValue>(_ type: E.Type, at place: _Place, in core: RealmCore) -> ElementKind {
        if let type = E._linkedType(at: place, in: core) { return .objects(type: type) }
        if case .embedded = E._kind.type, let target = E._kind.target { return .embedded(ModelSchema.of(target)) }
        return .values(E._kind.type)
    }

    func model(_ core: RealmCore) -> ElementModel {
        switch self {
        case .objects(let type): .object(core.classes.schema(type))
        case .embedded(let schema): .object(schema)
        case .values: .scalar
        }
    }

    func query(_ core: RealmCore) -> ReplicaQuery {
        let schema = core.replica.schema
        switch self {
        case .objects(let type): return ReplicaQuery(type: type, in: schema)
        case .embedded(let model):
            guard let type = schema[model.name] else { throwRealmException("The Realm does not have the class \(model.name).") }
            return ReplicaQuery(type: -1, in: schema, bound: .all(type, in: schema))
        case .values(let type):
            let property = SluiceCore.Property(id: 0, name: ElementModel.selfName, type: type, isOptional: true)
            // No class can have such a name.
            let element = ObjectType(name: "[\(type)]", kind: .embedded, properties: [property], primaryKey: nil)
            let extended = SluiceCore.Schema(schema.types + [element])
            return ReplicaQuery(type: -1, in: extended, bound: .all(element, in: extended))
        }
    }
}

/// The state shared by copies of results: the query and the elements as last read.
final class ResultsStorage {
    let core: RealmCore
    let origin: CollectionOrigin
    let kind: ElementKind
    let query: ReplicaQuery
    /// The part of the condition that the query language cannot express. It is evaluated on the elements that the query selects.
    let rest: [ElementCondition]
    /// The id of the subscription that `subscribe` created.
    var subscription: UInt64?

    /// The core's epoch at creation. A different epoch means that the Realm has been invalidated.
    let epoch: UInt64
    private var elements = Elements()
    /// The generation at which `elements` was read.
    private(set) var generation: UInt64 = 0
    private var counted: (count: Int, generation: UInt64)?
    /// The keys around one index, read before the others, and the generation at which they were read.
    var block: (keys: KeyBlock, generation: UInt64)?
    /// The last count that a floating Realm returned. An element below it stays accessible in that generation.
    private var lastCount: (count: Int, generation: UInt64) = (0, 0)
    /// The same result as an observer maintains it.
    weak var followed: FollowedResult?

    struct Elements {
        /// The primary keys of objects, or indices into `values` for other elements. In order.
        var keys: [Value] = []
        /// All elements of the collection, if they are not objects.
        var values: [Value] = []
        var steps: [_Place.Step] = []
        /// The number of elements that were counted before a read failed. The count stays the same within one generation.
        var lost = 0

        func isLost(_ position: Int) -> Bool { position >= 0 && position < lost }

        /// The index of an element that is not an object.
        func index(_ key: Value) -> Int { if case .int(let index) = key { Int(index) } else { 0 } }
        func value(_ key: Value) -> Value { values[index(key)] }
    }

    private init(core: RealmCore, origin: CollectionOrigin, kind: ElementKind, query: ReplicaQuery, rest: [ElementCondition]) {
        self.core = core
        epoch = core.clock.epoch
        self.origin = origin
        self.kind = kind
        self.query = query
        self.rest = rest
    }

    convenience init(core: RealmCore, origin: CollectionOrigin, kind: ElementKind) {
        self.init(core: core, origin: origin, kind: kind, query: kind.query(core), rest: [])
    }

    /// Creates results of all objects of a class.
    convenience init(core: RealmCore, type: Int) { self.init(core: core, origin: .table(type), kind: .objects(type: type)) }

    /// Returns a function that finds the same results in another Realm of the file; nil if the owner has been deleted.
    /// The function returns nil if the owner does not exist in that Realm.
    func finder() -> ((RealmCore) -> ResultsStorage?)? {
        // Captures no object of this Realm: the function runs on another scheduler.
        let (kind, query, rest) = (kind, query, rest)
        let make = { (core: RealmCore, origin: CollectionOrigin) in
            ResultsStorage(core: core, origin: origin, kind: kind, query: query, rest: rest)
        }
        switch origin {
        case .table(let type): return { make($0, .table(type)) }
        case .place(let place):
            guard let find = place.finder() else { return nil }
            return { core in find(core).map { make(core, .place($0)) } }
        case .links(let owner, let type, let property):
            guard let find = owner.finder() else { return nil }
            return { core in find(core).map { make(core, .links(owner: $0, type: type, property: property)) } }
        }
    }

    // MARK: Deriving

    /// Parses a predicate with arguments. Traps if it is invalid.
    func condition(_ format: String, _ arguments: [Any]) -> ElementCondition {
        checked { () throws(SluiceError) in try ElementCondition.parse(format, arguments, kind.model(core)) }
    }

    func condition(_ predicate: NSPredicate) -> ElementCondition {
        checked { () throws(SluiceError) in try ElementCondition.of(predicate, kind.model(core)) }
    }

    func condition<E>(_ isIncluded: (Query<E>) -> Query<Bool>) -> ElementCondition {
        let (format, arguments) = QueryRendering.render(isIncluded(Query<E>.root).node, quotesWords: true)
        return condition(format, arguments)
    }

    private func checked<R>(_ body: () throws(SluiceError) -> R) -> R {
        do throws(SluiceError) {
            return try body()
        } catch {
            throwRealmException("\(error)")
        }
    }

    private func with(_ query: ReplicaQuery, _ rest: [ElementCondition]) -> ResultsStorage {
        ResultsStorage(core: core, origin: origin, kind: kind, query: query, rest: rest)
    }

    /// The results narrowed by a condition. Traps if the condition is invalid.
    func narrowed(_ condition: ElementCondition) -> ResultsStorage {
        let (text, more) = condition.split
        let query = text.map { text in checked { () throws(SluiceError) in try self.query.narrowed(by: text.canonicalText) } } ?? self.query
        // The remaining parts are evaluated later; validate them now, so that the error occurs at the call.
        for part in more?.queries ?? [] { _ = checked { () throws(SluiceError) in try query.narrowed(by: part.canonicalText) } }
        return with(query, rest + (more.map { [$0] } ?? []))
    }

    /// A property path with the names in the file.
    private func stored(_ path: String) -> String {
        let steps = path.split(separator: ".", omittingEmptySubsequences: false).map { PathStep(.name(String($0))) }
        let names = PredicateNames(kind.model(core)).path(SyntaxPath(steps: steps)).path.steps.map { step in
            switch step.kind {
            case .name(let name): name
            case .backlinks: "@links"
            default: ""
            }
        }
        return names.joined(separator: ".")
    }

    func sorted(by descriptors: [SortDescriptor]) -> ResultsStorage {
        let keys = descriptors.map { (path: stored($0.keyPath), ascending: $0.ascending) }
        let paths = descriptors.map { "'\($0.keyPath)'" }.joined(separator: ", ")
        return with(arranged("sort", paths, descriptors.first?.keyPath) { query throws(SluiceError) in try query.sorted(by: keys) }, rest)
    }

    func distinct(by paths: [String]) -> ResultsStorage {
        let keys = paths.map { stored($0) }
        let texts = paths.map { "'\($0)'" }.joined(separator: ", ")
        return with(arranged("distinct", texts, paths.first) { query throws(SluiceError) in try query.distinct(by: keys) }, rest)
    }

    private func arranged(
        _ verb: String, _ paths: String, _ first: String?, _ body: (ReplicaQuery) throws(SluiceError) -> ReplicaQuery
    ) -> ReplicaQuery {
        do throws(SluiceError) {
            return try body(query)
        } catch {
            let reason =
                error.code == .queryUnknownProperty
                ? "property '\(query.bound.type.name).\(first ?? "")' does not exist." : error.message
            throwRealmException("Cannot \(verb) on key path \(paths): \(reason)")
        }
    }

    // MARK: Reading

    /// Advances a floating Realm and checks the epoch.
    /// - Returns: `true` if SQLite alone can answer, at less than the cost of reading the elements.
    func prepare() -> Bool {
        // Advance a floating Realm before the generations are compared.
        core.reading.attempt(()) { _ in }
        if epoch != core.clock.epoch { throwRealmException("Access to invalidated Results objects") }
        guard rest.isEmpty, case .table = origin else { return false }
        return true
    }

    /// Advances a floating Realm.
    func advanceIfFloating() { _ = prepare() }

    /// `true` if the elements are all objects of a class, in the table's order. Advances a floating Realm.
    var isWholeTable: Bool { prepare() && query.isWhole }

    /// The current elements. Advances a floating Realm.
    func current() -> Elements {
        _ = prepare()
        // Copies of frozen results share this cache between threads.
        return core.reading.exclusively { upToDate() }
    }

    /// The current elements. If the app has read a count above the index, the Realm does not advance.
    func current(at index: Int) -> Elements {
        // Without the lock: only a floating Realm records counts, and it is never frozen.
        hasCounted(beyond: index) ? upToDate() : current()
    }

    /// `true` if the app has read a count above the index in this generation, so that the Realm must not advance.
    func hasCounted(beyond index: Int) -> Bool {
        core.reading.mayAdvance && epoch == core.clock.epoch && lastCount.generation == core.clock.generation && index < lastCount.count
    }

    /// The elements of the current generation, read again if they are older.
    func upToDate() -> Elements {
        if generation != core.clock.generation {
            // If the read fails, the count that the app has read in this generation must not change.
            let lost = counted.flatMap { $0.generation == core.clock.generation ? $0.count : nil } ?? 0
            elements =
                live.map { Elements(keys: $0.keys) }
                ?? core.reading.attempt(Elements(lost: lost), moving: false) { store throws(SluiceError) in try read(store) }
            generation = core.clock.generation
        }
        return elements
    }

    /// The observer's result, if it belongs to the current generation.
    var live: LiveQuery? { followed.flatMap { $0.generation == core.clock.generation ? $0.live : nil } }

    /// The number of elements. SQLite counts them unless they have been read in this generation.
    var count: Int {
        let isSimple = prepare()
        let count = core.reading.exclusively { number(isSimple: isSimple) }
        // A floating Realm may advance before the app uses the count as a bound.
        if core.reading.mayAdvance { lastCount = (count, core.clock.generation) }
        return core.reading.noteCount(count)
    }

    private func number(isSimple: Bool) -> Int {
        guard isSimple, generation != core.clock.generation else {
            let elements = upToDate()
            return elements.keys.count + elements.lost
        }
        // An observer keeps the result up to date, so no query is needed.
        if let live { return live.count }
        if let counted, counted.generation == core.clock.generation { return counted.count }
        let count = core.reading.attempt(0, moving: false) { store throws(SluiceError) in try query.count(on: store) }
        counted = (count, core.clock.generation)
        return count
    }

    /// Reads the elements from the source.
    func read(_ store: RowStore) throws(SluiceError) -> Elements {
        var elements = base()
        switch (kind, origin) {
        case (.objects, .table) where rest.isEmpty: elements.keys = try query.run(on: store)
        case (.objects, .table):
            // The remaining condition is evaluated before DISTINCT, which keeps the first of the matching elements only.
            elements.keys = try kind.query(core).narrowed(by: query.text).run(on: store)
            elements.keys = try query.run(over: try meant(elements, store), on: store)
        case (.objects, _): elements.keys = try query.run(over: try meant(elements, store), on: store)
        case (.embedded, _), (.values, _):
            if query.isWhole && rest.isEmpty { break }
            let keys = try meant(elements, store)
            let chosen = try query.run(over: rows(keys.map { elements.value($0) }), on: store)
            elements.keys = chosen.map { keys[$0] }
        }
        return elements
    }

    /// The keys of the elements that meet the remaining condition.
    private func meant(_ elements: Elements, _ store: RowStore) throws(SluiceError) -> [Value] {
        if rest.isEmpty { return elements.keys }
        var meant: [Value] = []
        for key in elements.keys where try isMeant(key, elements, store) { meant.append(key) }
        return meant
    }

    /// The candidates of a collection, or of inverse links. Empty for a class, whose candidates the query reads itself.
    func base() -> Elements {
        var elements = Elements()
        switch origin {
        case .table: break
        case .links(let owner, let type, let property):
            elements.keys = core.reading.origins(of: owner, type: type, property: property)
        case .place(let place):
            var values: [Value] = []
            switch place.value {
            case .list(let list): (values, elements.steps) = (list, list.indices.map { .index($0) })
            case .dictionary(let entries):
                let sorted = entries.sorted { $0.key < $1.key }
                (values, elements.steps) = (sorted.map(\.value), sorted.map { .key($0.key) })
            default: break
            }
            if case .objects = kind {
                elements.keys = values.filter { !$0.isNull }
            } else {
                elements.values = values
                elements.keys = values.indices.map { .int(Int64($0)) }
            }
        }
        return elements
    }

    /// The elements as rows of the query's type. They are values or embedded objects.
    private func rows(_ values: [Value]) -> [Row] {
        values.map { value in
            guard case .embedded(let schema) = kind else { return Row([value]) }
            guard case .dictionary(let fields) = value else { return Row(schema.properties.prefix(schema.storedCount).map { _ in nil }) }
            return Row(query.bound.type.properties.map { fields[$0.name] })
        }
    }

    /// `true` if an element meets the remaining condition.
    private func isMeant(_ key: Value, _ elements: Elements, _ store: RowStore) throws(SluiceError) -> Bool {
        var failure: SluiceError?
        let element = untyped(key, elements)
        let isMeant = rest.allSatisfy { condition in
            condition.holds(for: element) { part in
                do throws(SluiceError) {
                    let query = try kind.query(core).narrowed(by: part.canonicalText)
                    if case .objects = kind { return try query.holds(for: key, on: store) }
                    return try !query.run(over: rows([elements.value(key)]), on: store).isEmpty
                } catch {
                    failure = error
                    return false
                }
            }
        }
        if let failure { throw failure }
        return isMeant
    }

    /// An element without its static type.
    private func untyped(_ key: Value, _ elements: Elements) -> Any? {
        switch kind {
        case .objects(let type): return core.object(core.classes.schema(type).objectClass, type: type, key: key)
        case .embedded(let schema):
            guard case .place(let place) = origin else { return nil }
            let step = elements.steps[elements.index(key)]
            return (schema.objectClass as? EmbeddedObject.Type)?.accessor(at: _Place(parent: place, step: step))
        case .values: return elements.value(key).plain
        }
    }

    /// The index of the first match in these results' order; nil if there is none.
    func firstIndex(_ condition: ElementCondition) -> Int? {
        let matching = narrowed(condition)
        // The narrowed results keep this order, so their first key has the lowest index.
        guard let first = matching.firstKey else { return nil }
        return current().keys.firstIndex(of: first)
    }

    func contains(_ key: Value) -> Bool { current().keys.contains(key) }
}

extension Results {
    /// Creates results of the elements of a managed list, set or map; nil if it is unmanaged.
    init?(elementsOf place: _Place) {
        guard let core = place.core else { return nil }
        self.init(storage: ResultsStorage(core: core, origin: .place(place), kind: .of(Element.self, at: place, in: core)))
    }
}
