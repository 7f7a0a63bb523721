import SluiceCore
import SluiceMerge
import SluiceWire

@testable import SluicePipeline

/// What the gateway does with changesets.
extension SimulatedGateway {
    mutating func upload(_ upload: PBUpload, _ id: UInt64) throws(SluiceError) {
        guard let session = sessions[id] else { return }
        let client = session.client
        guard clients[client]?.session == id else { return fail(id, .resync, .transient) }
        let already = session.outgoing.count
        clients[client]?.compensations.removeAll { $0.id <= upload.compensation }
        var futile: [PBFutileWrite] = []
        for changeset in upload.changesets {
            let taken = clients[client]?.changeset ?? 0
            let isNew = try sessions[id]?.machine.take(changeset: changeset.number) ?? false
            try feed(id, .committed(Acknowledgement(changeset: changeset.number, lsn: LSN(rawValue: lsn), isCommit: isNew)))
            // What another session of the client has brought meanwhile is in the database.
            guard isNew && changeset.number > taken || has(.twice, 100) else { continue }
            clients[client]?.changeset = max(changeset.number, taken)
            clients[client]?.changesetTime = changeset.time
            if has(.lost, 5) { continue }
            effects["\(client)/\(changeset.number)", default: 0] += 1
            note(changeset.baseLsn, of: client)
            let came = merge(changeset, session)
            futile += came.futile
            if !came.refused.isEmpty { compensate(client, came.refused, id) }
        }
        guard !upload.changesets.isEmpty else { return }
        acknowledge(futile, id)
        if session.machine.views.isInStep { tell(id, []) }
        if chance(50) { holdBackCommits(id, from: already) }
    }

    /// The log takes its time: what was committed comes behind its acknowledgement.
    private mutating func holdBackCommits(_ id: UInt64, from start: Int) {
        guard var messages = sessions[id]?.outgoing, start < messages.count else { return }
        func isCommit(_ message: PBServerMessage) -> Bool { if case .commits? = message.kind { true } else { false } }
        let new = messages[start...]
        messages.replaceSubrange(start..., with: new.filter { !isCommit($0) } + new.filter(isCommit))
        sessions[id]?.outgoing = messages
    }

    /// One transaction: what may be written is, merged with what is there.
    private mutating func merge(_ message: PBChangeset, _ session: Session) -> (refused: [PBRejectedWrite], futile: [PBFutileWrite]) {
        guard let changeset = try? Changeset(message, schema: serverTypes) else {
            violations.append("an unreadable changeset")
            return ([], [])
        }
        var clock = HybridClock()
        let stamp = WriteStamp(time: clock.observe(changeset.time, now: wall), client: ClientID(rawValue: session.client))
        let writer = WriteContext(stamp: stamp, base: changeset.base, now: LSN(rawValue: lsn))
        var writes: [(key: Int64, item: Item?)] = []
        var refused: [PBRejectedWrite] = []
        var futile: [PBFutileWrite] = []
        var times: [Int64: WriteTimes] = [:]
        for (change, message) in zip(changeset.changes, message.changes) {
            guard case .int(let key) = change.object.key else { continue }
            var row = items[key]?.values
            row?["_id"] = .int(key)
            var state = ObjectState(
                row: row, clocks: clocks[key], type: itemType, rowTime: rowTimes[key] ?? wall, now: LSN(rawValue: lsn))
            do {
                try Merge.apply(change, by: writer, to: &state, type: itemType)
            } catch {
                violations.append("changeset \(changeset.number) of \(session.client): \(error)")
            }
            if let reason = reason(toRefuse: change, state, session) {
                refused.append(rejected(message, changeset.number, reason))
                continue
            }
            state.clocks.prune(below: horizon)
            writeTime = max(writeTime, stamp.time)
            let written = WriteTimes(state.clocks, since: clocks[key])
            times[key] = times[key]?.followed(by: written) ?? written
            clocks[key] = state.clocks
            let item = state.values.map { Item($0) }
            if item == nil, items[key] == nil, change.kind != .delete {
                futile.append(PBFutileWrite(changeset: changeset.number, change.object))
            }
            if item != items[key] { writes.append((key, item)) }
        }
        writing = (session.client, changeset.number)
        if !writes.isEmpty { commit(writes, times: times, time: stamp.time) }
        writing = nil
        return (refused, futile)
    }

    mutating func note(_ base: UInt64, of client: UInt64) {
        let position = clients[client]?.position ?? 0
        clients[client]?.position = max(position, base)
    }

    private var horizon: LSN { LSN(rawValue: clients.values.map(\.position).min() ?? 0) }

    private mutating func reason(toRefuse change: ObjectChange, _ state: ObjectState, _ session: Session) -> String? {
        if state.values?["value"] == .string("forbidden") { return "not allowed" }
        guard case .string(let store)? = change.values["store"], !session.stores.contains(store) else { return nil }
        outside.append("client \(session.client) wrote \(change.object.key) into \(store) with a view of \(session.stores.sorted())")
        return "outside of the view"
    }

    private func rejected(_ change: PBObjectChange, _ changeset: UInt64, _ reason: String) -> PBRejectedWrite {
        make(PBRejectedWrite()) {
            $0.changeset = changeset
            $0.type = change.type
            $0.primaryKey = change.primaryKey
            $0.code = UInt32(ErrorCode.compensatingWrite.rawValue)
            $0.reason = reason
        }
    }

    private mutating func compensate(_ client: UInt64, _ writes: [PBRejectedWrite], _ id: UInt64) {
        let number = (clients[client]?.lastCompensation ?? 0) + 1
        clients[client]?.lastCompensation = number
        clients[client]?.compensations.append((number, writes))
        send(
            id,
            .compensation(
                make(PBCompensation()) {
                    $0.id = number
                    $0.writes = writes
                }))
    }
}
