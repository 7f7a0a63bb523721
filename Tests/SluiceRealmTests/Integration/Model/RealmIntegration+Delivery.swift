import SluiceCore

@testable import SluiceRealm

extension RealmIntegration {
    /// Updates a file's view for the objects of a changeset.
    /// - Returns: The instructions that the file receives.
    mutating func deliver(
        _ work: RealmUploadWork, to file: UInt64, rules: some RealmViewRules, now: UInt64
    ) -> [RealmInstruction] {
        guard var memory = files.removeValue(forKey: file) else { return [] }
        defer { files[file] = memory }
        let isWriter = file == work.writer.file
        // The server's entry for the writer has the server's stamp, since a file is never the origin of its own entries.
        let stamp = isWriter ? RealmStamp(now, Self.server) : work.writer.stamp
        var instructions: [RealmInstruction] = []
        for key in work.order {
            guard let state = work.states[key] else { continue }
            if state.rejection != nil {
                if isWriter { instructions += restore(key, &memory, file, rules, now) }
                continue
            }
            let isHeld = memory.view.contains(key) || (isWriter && state.isCreated)
            let isVisible = objects[key].map { rules.isInView(key, $0.values, of: file) } ?? false
            switch (isHeld, isVisible) {
            case (true, true):
                memory.view.insert(key)
                instructions += changes(state, key, file, stamp, isWriter, &memory)
            case (false, true): instructions += enter(key, &memory, stamp)
            case (true, false):
                memory.view.remove(key)
                // The writer has deleted it by itself.
                if isWriter, state.isErased, state.after == nil { continue }
                memory.setBarrier(key, version, stamp)
                instructions.append(.eraseObject(key))
            case (false, false): break
            }
        }
        return instructions
    }

    /// Returns the instructions for an object that enters a file's view.
    private func enter(_ key: ObjectKey, _ memory: inout RealmFileMemory, _ stamp: RealmStamp) -> [RealmInstruction] {
        memory.setBarrier(key, version, stamp)
        memory.view.insert(key)
        return objects[key]?.entering(key) ?? []
    }

    /// Returns the instructions that undo the rejected changes of an object.
    private func restore(
        _ key: ObjectKey, _ memory: inout RealmFileMemory, _ file: UInt64, _ rules: some RealmViewRules, _ now: UInt64
    ) -> [RealmInstruction] {
        memory.setBarrier(key, version, RealmStamp(now, Self.server))
        guard let object = objects[key], memory.view.contains(key), rules.isInView(key, object.values, of: file) else {
            memory.view.remove(key)
            return [.eraseObject(key)]
        }
        return object.entering(key)
    }

    /// Returns the instructions for a file that holds the object before and after: those of the writer, then the lists with conflicts.
    private mutating func changes(
        _ state: RealmUploadWork.State, _ key: ObjectKey, _ file: UInt64, _ stamp: RealmStamp, _ isWriter: Bool,
        _ memory: inout RealmFileMemory
    ) -> [RealmInstruction] {
        var instructions: [RealmInstruction] = []
        if !isWriter {
            instructions = state.accepted
            if state.isErased { memory.setBarrier(key, version, stamp) }
            for case .clear(let path, .list) in state.accepted {
                objects[key]?.sentClear(of: path.field, to: file, version: version, stamp: stamp)
            }
        }
        for field in state.conflicts {
            objects[key]?.sentClear(of: field, to: file, version: version, stamp: stamp)
            instructions += objects[key]?.repair(field, key) ?? []
        }
        return instructions
    }

    /// Brings a file to its current queries.
    ///
    /// - Parameter isResend: `true` if the file may lack parts of the last bootstrap. It then receives its whole view, and erasures of all
    ///   that it may hold. Entries of its stream that precede the bootstrap must be dropped.
    /// - Returns: The entry, perhaps without instructions, since a bootstrap needs an entry. Nil for a file that is unknown or exceeds a
    ///   bound: it must be reset.
    mutating func bootstrap(
        _ file: UInt64, rules: some RealmViewRules, now: UInt64, isResend: Bool
    ) -> RealmDelivery? {
        guard var memory = files.removeValue(forKey: file) else { return nil }
        let version = nextVersion()
        let stamp = RealmStamp(now, Self.server)
        let wanted = Set(objects.filter { rules.isInView($0.key, $0.value.values, of: file) }.keys)
        let entering = isResend ? wanted : wanted.subtracting(memory.view)
        let leaving = (isResend ? memory.held : memory.view).subtracting(wanted)
        var instructions: [RealmInstruction] = []
        for key in leaving {
            memory.setBarrier(key, version, stamp)
            instructions.append(.eraseObject(key))
        }
        for key in entering {
            memory.setBarrier(key, version, stamp)
            instructions += objects[key]?.entering(key) ?? []
        }
        memory.view = wanted
        files[file] = memory
        if enforceBounds().contains(file) { return nil }
        return RealmDelivery(serverVersion: version, clientVersion: memory.clientVersion, stamp: stamp, instructions: instructions)
    }
}
