package import SluiceCore

/// A model of the objects that one client holds, and the check of each operation for it.
///
/// A client stops syncing for good, or its process ends, when it receives a change of an object that it lacks, an index beyond a list's
/// end, or a removed class. The model finds such an operation before it is sent.
///
/// The model describes the client at the end of its stream, with its own changesets up to the acknowledged one. An entry is checked once,
/// when it enters the stream.
///
/// Memory is about 50 bytes an object: a hash of 64 bits stands for class and key, and lengths are kept for lists that are not empty. Two
/// objects with one hash hide a mistake and never cause one. Beyond `maximumObjects` the model forgets all objects and checks schema
/// changes alone.
///
/// Lengths are known for a property's own list of an object that the client received or created in full. Lists deeper inside are not
/// checked: an edit of the list around them moves them.
package struct ClientModel: Hashable, Sendable {
    /// The list of one property.
    private struct ListLength: Hashable, Sendable {
        var property: UInt64
        var count: UInt32
    }

    private struct Held: Hashable, Sendable {
        /// `true` if a list that is not in `lists` is empty, `false` if its length is unknown.
        var isExact: Bool
        var lists: [ListLength] = []
    }

    package let maximumObjects: Int
    private var objects: [UInt64: Held] = [:]
    /// `true` once the client holds more objects than the model may.
    package private(set) var isSaturated = false

    package init(maximumObjects: Int = 2_000_000) { self.maximumObjects = maximumObjects }

    package var count: Int { objects.count }

    /// Returns `true` if the client holds the object, as far as the model knows.
    package func holds(_ object: OutgoingOperation.Object) -> Bool { isSaturated || objects[Self.hash(object)] != nil }

    /// Adds an object that the client holds from an earlier session. The lengths of its lists are unknown.
    package mutating func restore(_ object: OutgoingOperation.Object) {
        guard !isSaturated else { return }
        objects[Self.hash(object)] = Held(isExact: false)
        bound()
    }

    /// Checks the operations of one changeset in order, and applies them.
    /// - Throws: `internalError` with the operation at fault. The model is then unusable: the client must be reset.
    package mutating func send(_ operations: [OutgoingOperation]) throws(SluiceError) {
        let entering = operations.reduce(0) { if case .enter(let objects) = $1 { $0 + objects.count } else { $0 } }
        // Not for a few, as that would copy the objects of another model that shares them.
        if entering > 1_000, !isSaturated { objects.reserveCapacity(min(objects.count + entering, maximumObjects)) }
        for operation in operations { try apply(operation, isChecked: true) }
    }

    /// Applies operations that the client made itself and that took effect. Nothing is checked: the client knows its objects.
    package mutating func received(_ operations: [OutgoingOperation]) {
        // Without checks nothing throws.
        for operation in operations { try? apply(operation, isChecked: false) }
    }

    private mutating func apply(_ operation: OutgoingOperation, isChecked: Bool) throws(SluiceError) {
        switch operation {
        case .addTable, .addColumn: break
        case .eraseTable(let table): if isChecked { throw Self.defect("removes class \(table)", operation) }
        case .eraseColumn(let table, let name): if isChecked { throw Self.defect("removes property \(table).\(name)", operation) }
        case .create(let object): create(object)
        case .erase(let object): if !isSaturated { objects[Self.hash(object)] = nil }
        case .enter(let entered): for object in entered { enter(object) }
        case .update(let path, let shape): try update(path, shape, isChecked, operation)
        case .insert(let path, let index, let size):
            try edit(path, .init(at: index, isInsert: true, size: size, change: 1), isChecked, operation)
        case .set(let path, let index): try edit(path, .init(at: index), isChecked, operation)
        case .remove(let path, let index, let size): try edit(path, .init(at: index, size: size, change: -1), isChecked, operation)
        case .move(let path, let from, let to, let size):
            if isChecked, from == to { throw Self.defect("moves an element to its own place", operation) }
            try edit(path, .init(at: max(from, to), size: size), isChecked, operation)
        case .clear(let path): try clear(path, isChecked, operation)
        }
    }

    private mutating func create(_ object: OutgoingOperation.Object) {
        guard !isSaturated else { return }
        let hash = Self.hash(object)
        // Creating an object that exists changes nothing.
        if objects[hash] == nil { objects[hash] = Held(isExact: true) }
        bound()
    }

    private mutating func enter(_ object: OutgoingOperation.Entered) {
        guard !isSaturated else { return }
        let lengths = object.lists.map { ListLength(property: Self.hash($0.property), count: $0.count) }
        objects[object.hash] = Held(isExact: true, lists: lengths)
        bound()
    }

    private mutating func bound() {
        guard objects.count > maximumObjects else { return }
        objects = [:]
        isSaturated = true
    }

    /// Returns the hash of the path's object if the model has the object.
    private func held(_ path: OutgoingOperation.Path, _ isChecked: Bool, _ operation: OutgoingOperation) throws(SluiceError) -> UInt64? {
        guard !isSaturated else { return nil }
        let hash = Self.hash(path.object)
        if objects[hash] != nil { return hash }
        guard isChecked else { return nil }
        throw Self.defect("changes an object of class \(path.object.table) that the client lacks", operation)
    }

    private mutating func update(
        _ path: OutgoingOperation.Path, _ shape: OutgoingOperation.Shape, _ isChecked: Bool, _ operation: OutgoingOperation
    ) throws(SluiceError) {
        guard let hash = try held(path, isChecked, operation) else { return }
        // An update at an index is `set`; here it would bypass the check of the index.
        if isChecked, case .index? = path.elements.last { throw Self.defect("updates a list's element as a value", operation) }
        guard path.elements.isEmpty else { return }
        switch shape {
        // Empty for an exact object, unknown for another one.
        case .value: removeLength(hash, path)
        // A list's length stays. If the place had another value, its length is 0 already or unknown.
        case .list: break
        }
    }

    /// An edit of a list that needs one of its places.
    private struct ListEdit {
        var index: UInt32
        var isInsert: Bool
        /// The length before the edit, as the client will compare it.
        var size: UInt32?
        var change: Int64

        init(at index: UInt32, isInsert: Bool = false, size: UInt32? = nil, change: Int64 = 0) {
            (self.index, self.isInsert, self.size, self.change) = (index, isInsert, size, change)
        }
    }

    private mutating func edit(
        _ path: OutgoingOperation.Path, _ edit: ListEdit, _ isChecked: Bool, _ operation: OutgoingOperation
    ) throws(SluiceError) {
        guard let hash = try held(path, isChecked, operation) else { return }
        let known = path.elements.isEmpty ? length(hash, path) : nil
        if isChecked {
            // The client checks the index against the size in the message, or aborts.
            let length = known ?? edit.size
            if let length, edit.index > length || (edit.index == length && !edit.isInsert) {
                throw Self.defect("uses index \(edit.index) of a list of \(length)", operation)
            }
            if let known, let size = edit.size, size != known { throw Self.defect("names size \(size) for a list of \(known)", operation) }
        }
        guard path.elements.isEmpty, let length = known ?? edit.size else { return }
        setLength(hash, path, UInt32(clamping: Int64(length) + edit.change))
    }

    private mutating func clear(
        _ path: OutgoingOperation.Path, _ isChecked: Bool, _ operation: OutgoingOperation
    ) throws(SluiceError) {
        guard let hash = try held(path, isChecked, operation), path.elements.isEmpty else { return }
        setLength(hash, path, 0)
    }

    // MARK: Lengths

    private func length(_ hash: UInt64, _ path: OutgoingOperation.Path) -> UInt32? {
        guard let held = objects[hash] else { return nil }
        let property = Self.hash(path.property)
        return held.lists.first { $0.property == property }?.count ?? (held.isExact ? 0 : nil)
    }

    private mutating func removeLength(_ hash: UInt64, _ path: OutgoingOperation.Path) {
        guard objects[hash]?.lists.isEmpty == false else { return }
        let property = Self.hash(path.property)
        objects[hash]?.lists.removeAll { $0.property == property }
    }

    private mutating func setLength(_ hash: UInt64, _ path: OutgoingOperation.Path, _ count: UInt32) {
        guard let isExact = objects[hash]?.isExact else { return }
        let property = Self.hash(path.property)
        let place = objects[hash]?.lists.firstIndex { $0.property == property }
        switch place {
        // An empty list of an exact object needs no memory.
        case let place? where count == 0 && isExact: objects[hash]?.lists.remove(at: place)
        case let place?: objects[hash]?.lists[place].count = count
        case nil where count == 0 && isExact: break
        case nil: objects[hash]?.lists.append(ListLength(property: property, count: count))
        }
    }

    // MARK: Hashes

    /// FNV-1a over the class, a zero byte and the key, with a finishing mix. No stored format contains it.
    static func hash(_ object: OutgoingOperation.Object) -> UInt64 { hash(object.key, start(of: object.table)) }

    /// Returns the state of the hash behind the class.
    static func start(of table: String) -> UInt64 { hash(bytes: CollectionOfOne(0), hash(table)) }

    /// Returns the hash of an object.
    /// - Parameter start: That of its class.
    static func hash(_ key: some Sequence<UInt8>, _ start: UInt64) -> UInt64 {
        var state = hash(bytes: key, start)
        state = (state ^ (state >> 31)) &* 0x9E37_79B9_7F4A_7C15
        return state ^ (state >> 29)
    }

    private static func hash(_ property: String) -> UInt64 { hash(bytes: property.utf8, 0xCBF2_9CE4_8422_2325) }

    private static func hash(bytes: some Sequence<UInt8>, _ start: UInt64) -> UInt64 {
        bytes.reduce(start) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// An operation that would stop the client. Its content is for operators alone.
    private static func defect(_ problem: String, _ operation: OutgoingOperation) -> SluiceError {
        SluiceError(
            .internalError, "A changeset for a client \(problem).", value: String("\(operation)".prefix(400)),
            fix: "Report this defect. The client replaces its file and continues.")
    }
}
