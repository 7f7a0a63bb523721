import SluiceCore
import SluicePorts
import SluiceRealm
import SluiceWire

// The file's own changesets and compensating writes.
extension BridgeStream {
    // MARK: Changesets

    /// Registers a changeset before it is sent.
    /// - Parameters:
    ///   - progress: The progress of the upload if the changeset is its last one, otherwise the changeset's number.
    ///   - operations: The operations up to the changeset; nil for the last one.
    /// - Returns: The changeset for the pipeline, with a time later than all that its writer had seen.
    mutating func upload(
        _ entry: RealmUploadEntry, _ changes: [ObjectChange], progress: UInt64, operations: [OutgoingOperation]?
    ) -> Changeset {
        let seen = max(steps.time(at: entry.serverVersion), uploadTime)
        let next = HybridTime(rawValue: seen.rawValue == .max ? .max : seen.rawValue + 1)
        uploadTime = max(RealmTime.hybrid(entry.timestamp), next)
        own[entry.clientVersion] = OwnChangeset(
            entry.clientVersion, writer(of: entry), progress: progress, operations: operations, changes: changes, schema)
        ownOrder.append(entry.clientVersion)
        content.lists.begin(entry.clientVersion, Set(changes.map(\.object)))
        for change in changes where change.kind != .set {
            // Beyond the bound, the client keeps objects as after a crash of the gateway.
            let isNoted = change.kind == .create && created.count < BridgeReplica.mostObjects
            created[change.object] = isNoted ? entry.clientVersion : nil
        }
        return Changeset(
            number: entry.clientVersion, time: uploadTime, base: steps.base(of: entry.serverVersion), changes: changes)
    }

    /// Records a changeset as the client made it.
    mutating func receive(_ entry: RealmUploadEntry, _ instructions: [RealmInstruction]) {
        let relevant = instructions.filter { instruction in
            guard case .update(let path, _, _) = instruction else { return true }
            return schema[path.object.type]?[path.field]?.hasDiscards ?? false
        }
        content.lists.receive(entry.clientVersion, base: entry.serverVersion, time: entry.timestamp, relevant)
        guard entry.clientVersion <= content.client else { return }
        // A repeated one. The client holds what it created, unless the stream has not passed the changeset.
        let writer = writer(of: entry)
        create(
            instructions.filter { instruction in
                instruction.object.map { !content.memory.isBarred($0, writer) && !content.memory.view.contains($0) } ?? false
            }, of: entry)
        meetRepeated(instructions, of: entry)
    }

    /// Records the objects that a repeated changeset made or erased, unless the client has discarded that.
    ///
    /// The state can be older than the changeset, by a crash or by an upload under way at the end of the session. The bootstrap then does
    /// not name an object that was made and deleted since. So each is compared with the server.
    private mutating func meetRepeated(_ instructions: [RealmInstruction], of entry: RealmUploadEntry) {
        var isHeld: [ObjectKey: Bool] = [:]
        for instruction in instructions {
            switch instruction {
            case .createObject(let object): isHeld[object] = true
            case .eraseObject(let object): isHeld[object] = false
            default: break
            }
        }
        let writer = writer(of: entry)
        for (object, isHeld) in isHeld where schema[object.type]?.kind == .topLevel {
            if content.memory.isBarred(object, writer), isHeld || !content.pass(object, writer) { continue }
            if !isBehind, isHeld == content.memory.view.contains(object) { continue }
            // What it made is not noted as held: the model of the client, which checks each entry, does not know it either.
            if !isHeld { content.make(object, isHeld: false) }
            created[object] = isHeld && created.count < BridgeReplica.mostObjects ? entry.clientVersion : nil
            compare(object)
        }
    }

    /// Records the objects that a changeset creates, by the instructions that the client has not discarded.
    private mutating func create(_ instructions: [RealmInstruction], of entry: RealmUploadEntry) {
        let kept = instructions.filter { instruction in instruction.object.map { schema[$0.type]?.kind == .topLevel } ?? false }
        content.lists.create(entry.clientVersion, base: entry.serverVersion, kept)
    }

    /// Returns changes with the client's own changes that its lists lack.
    func completed(_ changes: [ObjectChange], of entry: RealmUploadEntry) -> [ObjectChange] {
        changes.map { change in
            var change = change
            for name in Set(change.edits.map(\.property)) { change.discarded[name] = discarded(change.object, name, of: entry) }
            return change
        }
    }

    private func discarded(_ object: ObjectKey, _ name: String, of entry: RealmUploadEntry) -> DiscardedChanges? {
        func firstTag(_ number: UInt64) -> UInt64 { RealmEditTranslator<UnknownLists>.firstTag(of: number) }
        let (base, number) = (entry.serverVersion, entry.clientVersion)
        if let creation = content.lists.creation(of: object, name, base: base, by: number) {
            return DiscardedChanges(creation: creation, firstTag: firstTag(creation))
        }
        guard let property = schema[object.type]?[name], property.hasDiscards,
            let last = content.lists.discarded(object, name, base: base, by: number)
        else { return nil }
        return DiscardedChanges(changeset: last, nextTag: firstTag(last &+ 1), hasClears: property.collection == .list)
    }

    /// Returns the instructions that the client has not discarded: those of objects without a later erasure in the stream. Records the
    /// objects that they create.
    mutating func permitted(_ instructions: [RealmInstruction], of entry: RealmUploadEntry) -> [RealmInstruction] {
        let writer = writer(of: entry)
        var permitted: [RealmInstruction] = []
        for instruction in instructions {
            guard let object = instruction.object, content.memory.isBarred(object, writer) else {
                permitted.append(instruction)
                continue
            }
            switch instruction {
            // The client's own later erasure beats the one that it receives.
            case .eraseObject where content.pass(object, writer): permitted.append(instruction)
            case .eraseObject: content.void(object, isHeld: false, writer)
            case .createObject: content.void(object, isHeld: true, writer)
            default: break
            }
        }
        create(permitted, of: entry)
        return permitted
    }

    private func writer(of entry: RealmUploadEntry) -> RealmWriter {
        RealmWriter(stamp: RealmStamp(entry.timestamp, content.file), base: entry.serverVersion, version: 0)
    }

    /// Records an upload whose changesets have nothing for the pipeline: entries from here on follow its progress.
    /// - Returns: The version of the stream before them.
    mutating func progress(to client: UInt64) -> UInt64 {
        content.client = max(content.client, client)
        return content.last
    }

    /// Removes and returns the version of the stream before a changeset took effect; nil if that is not known yet.
    mutating func takeBoundary(of number: UInt64) -> UInt64? {
        guard let version = boundaries[number] else { return nil }
        boundaries = boundaries.filter { $0.key > number }
        return version
    }

    /// Records the progress of the client.
    /// - Returns: The number up to which its compensating writes are confirmed; 0 for none.
    mutating func confirm(_ version: UInt64) -> UInt64 {
        // The conflicts of a changeset under way are decided when its commit comes.
        let needed = min(version, own.values.map(\.writer.base).min() ?? version)
        content.confirm(needed)
        steps.confirm(needed)
        confirmEntries(upTo: version)
        // While the stream is behind, it may lack changesets of an earlier session.
        let passed = isBehind ? 0 : ownOrder.first.map { max($0, 1) - 1 } ?? .max
        // Clients repeat a version, and one may have left a million lists unconfirmed.
        if listsConfirmed != (version, passed) {
            listsConfirmed = (version, passed)
            content.lists.confirm(version, passed: passed, end: max(content.last, steps.end))
        }
        guard !replica.compensations.isEmpty else { return 0 }
        let numbers = replica.compensations.filter { $0.value <= version }.map(\.key)
        for number in numbers { replica.compensations[number] = nil }
        return numbers.max() ?? 0
    }

    mutating func acknowledge(_ number: UInt64, _ lsn: LSN) {
        // The stream may have passed the position already.
        if lsn <= replica.lsn { passAll(upTo: number) } else { acknowledgements.append((number, lsn)) }
    }

    /// Passes the changesets without an echo whose acknowledgement the stream has reached.
    mutating func passAcknowledged() {
        while let first = acknowledgements.first, first.lsn <= replica.lsn {
            acknowledgements.removeFirst()
            passAll(upTo: first.number)
        }
    }

    /// Records that the changesets up to a number took effect before the next entry.
    mutating func passAll(upTo number: UInt64) { if let changeset = pass(upTo: number) { settle(changeset) } }

    /// Records that the changesets up to a number took effect before the next entry. O(changesets passed).
    /// - Returns: The changeset of that number, which the caller settles; nil if it is unknown or was passed before.
    mutating func pass(upTo number: UInt64) -> OwnChangeset? {
        var found: OwnChangeset?
        while let key = ownOrder.first, key <= number {
            ownOrder.removeFirst()
            guard let changeset = own.removeValue(forKey: key) else { continue }
            content.lists.pass(key, changeset.objects.keys)
            boundaries[key] = content.last
            lastPassed = max(lastPassed, key)
            content.client = max(content.client, changeset.progress)
            if let operations = changeset.operations {
                passed.append(
                    .integrated(RealmIntegratedUpload(clientVersion: key, serverVersion: content.last, operations: operations)))
            }
            if key == number { found = changeset } else { settle(changeset) }
        }
        return found
    }

    /// Records the objects that the client has made or erased, unless an echo has done so. Finds those of which the client may have another
    /// state than the server.
    mutating func settle(_ changeset: OwnChangeset) {
        for (object, own) in changeset.objects where isBehind || !own.isEchoed {
            // The client has the server's object: it has discarded its change.
            if content.discards(object, own, changeset.writer) { continue }
            if own.isDeleted || own.isCreated { content.make(object, isHeld: !own.isDeleted) }
            // The bootstrap that follows has the row of an echo.
            guard !own.isEchoed else { continue }
            if own.isDeleted || own.isCreated {
                // An object that the client erased may have a new life. One that it created may have other values already.
                repairs[object] = .whole
            } else if !own.written.isEmpty {
                // Without an echo the row has not changed. The client's values have lost if they differ from it, perhaps to a write of
                // the row's own values, which the stream does not show.
                repairs[object, default: .properties([])].form(own.written)
            }
        }
    }
}
