import SluiceCore
import SluiceReplica

/// Single objects of a result whose keys have not been read yet.
extension ResultsStorage {
    /// The key of the object at a place, found without the keys before it.
    ///
    /// All objects of a class are found block by block. Of another result one block is read before all keys are: a loop by index would
    /// have SQLite pass over the same rows again and again.
    /// - Returns: nil if all elements have been read, or have to be.
    func key(at index: Int) -> Value? {
        guard index >= 0, case .objects = kind, case .table = origin, rest.isEmpty else { return nil }
        if !hasTold(of: index) { _ = prepare() }
        return core.exclusively { unreadKey(at: index) }
    }

    private func unreadKey(at index: Int) -> Value? {
        let state = core.clock.generation
        if generation == state { return nil }
        if let live { return live[index] }
        if let block, block.generation == state {
            if let key = block.keys[index] { return key }
            if !query.isWhole { return nil }
        }
        let found = core.attempt(nil, moving: false) { store throws(SluiceError) in try query.block(at: index, on: store) }
        guard let found else { return nil }
        block = (found, state)
        return found[index]
    }

    /// The first key without the others, where that is cheaper.
    var firstKey: Value? {
        let isSimple = prepare()
        return core.exclusively {
            guard isSimple, generation != core.clock.generation else { return upToDate().keys.first }
            if let live { return live[0] }
            return core.attempt(nil) { store throws(SluiceError) in try query.first(on: store) }
        }
    }

    /// The last key without the others, where that is cheaper.
    var lastKey: Value? {
        let isSimple = prepare()
        return core.exclusively {
            guard isSimple, generation != core.clock.generation else { return upToDate().keys.last }
            if let live { return live[live.count - 1] }
            guard query.isWhole else { return upToDate().keys.last }
            return core.attempt(nil, moving: false) { store throws(SluiceError) in try store.lastKey(type: query.type) }
        }
    }
}
