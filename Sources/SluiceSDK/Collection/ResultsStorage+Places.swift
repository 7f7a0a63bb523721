import SluiceCore
import SluiceReplica

/// Access to single objects of a result before its keys are read.
extension ResultsStorage {
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
}
