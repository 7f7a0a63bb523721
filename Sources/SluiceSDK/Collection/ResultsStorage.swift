import Foundation
import SluiceCore
import SluiceQuery
import SluiceReplica

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
    private var block: (keys: KeyBlock, generation: UInt64)?
    /// The last count that a floating Realm returned. An element below it stays accessible in that generation.
    private var lastCount: (count: Int, generation: UInt64) = (0, 0)
    /// The same result as an observer maintains it.
    weak var followed: FollowedResult?

    typealias Elements = ElementReader.Elements

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

    var reader: ElementReader { ElementReader(core: core, origin: origin, kind: kind, query: query, rest: rest) }

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
                ?? core.reading.attempt(Elements(lost: lost), moving: false) { store throws(SluiceError) in try reader.read(store) }
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

    // MARK: Single elements, before the keys are read

    /// Returns the key of the object at an index without reading the keys before it.
    ///
    /// All objects of a class are read block by block. For other results only the first access reads a block; the next miss reads all keys.
    /// Otherwise a loop by index would have SQLite step over the same rows again and again.
    /// - Returns: nil if all keys have been read or must be read.
    func key(at index: Int) -> Value? {
        guard index >= 0, case .objects = kind, case .table = origin, rest.isEmpty else { return nil }
        // A count that the app has just read must hold for this access, so the Realm does not advance.
        if !hasCounted(beyond: index) { _ = prepare() }
        return core.reading.exclusively { unreadKey(at: index) }
    }

    private func unreadKey(at index: Int) -> Value? {
        let state = core.clock.generation
        if generation == state { return nil }
        if let live { return live[index] }
        if let block, block.generation == state {
            if let key = block.keys[index] { return key }
            // A second miss in the same snapshot means a loop: the caller then reads all keys.
            if !query.isWhole { return nil }
        }
        let found = core.reading.attempt(nil, moving: false) { store throws(SluiceError) in try query.block(at: index, on: store) }
        guard let found else { return nil }
        block = (found, state)
        return found[index]
    }

    /// The first key, without reading the others if SQLite can find it alone.
    var firstKey: Value? {
        let isSimple = prepare()
        return core.reading.exclusively {
            guard isSimple, generation != core.clock.generation else { return upToDate().keys.first }
            if let live { return live[0] }
            return core.reading.attempt(nil) { store throws(SluiceError) in try query.first(on: store) }
        }
    }

    /// The last key, without reading the others if SQLite can find it alone.
    var lastKey: Value? {
        let isSimple = prepare()
        return core.reading.exclusively {
            guard isSimple, generation != core.clock.generation else { return upToDate().keys.last }
            if let live { return live[live.count - 1] }
            guard query.isWhole else { return upToDate().keys.last }
            return core.reading.attempt(nil, moving: false) { store throws(SluiceError) in try store.lastKey(type: query.type) }
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
