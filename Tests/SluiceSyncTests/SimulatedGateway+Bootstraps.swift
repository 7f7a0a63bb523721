import Foundation
import SluiceCore
import SluiceMerge
import SluiceWire

@testable import SluicePipeline

/// Rows that a client has put aside: those up to a key that were new to it, as all commits below `before` left them.
struct Aside {
    /// Stands for what was asked for, and what the client had.
    var form: UInt64
    var before: UInt64
    var through: Int64

    init(form: UInt64, before: UInt64, through: Int64) {
        self.form = form
        self.before = before
        self.through = through
    }

    init?(_ checkpoint: PBCheckpoint) {
        guard let part = checkpoint.types.first, case .int(let through)? = try? Value(part.through) else { return nil }
        self.init(form: part.form, before: part.transaction, through: through)
    }

    var message: PBCheckpoint {
        make(PBCheckpoint()) { checkpoint in
            checkpoint.types = [
                make(PBCheckpointType()) {
                    $0.name = "Item"
                    $0.form = form
                    $0.transaction = before
                    $0.through = PBValue(.int(through))
                }
            ]
        }
    }
}

extension SimulatedGateway {
    /// Makes the bootstrap that a session waits for; now and then only begins one that a newer one replaces.
    mutating func bootstrap(_ id: UInt64) {
        guard let session = sessions[id], !session.isClosed, let wanted = session.wanted else { return }
        sessions[id]?.applied = nil
        if let applied = session.applied, session.held?.stores == wanted.stores, chance(50) {
            return resume(id, wanted, after: applied, session)
        }
        let items = has(.stale, 50) ? earlier : items
        let inView = items.filter { wanted.stores.contains($0.value.store) }
        let form = Self.form(wanted.stores, session)
        let aside = session.aside.flatMap { $0.form == form ? $0 : nil }
        sessions[id]?.aside = aside
        send(
            id,
            .bootstrapBegin(
                make(PBBootstrapBegin()) {
                    $0.version = wanted.version
                    $0.rows = UInt64(inView.count)
                    if let aside { $0.checkpoint = aside.message }
                }))
        let held = session.held.map { held in
            inView.filter { held.stores.contains($0.value.store) && writtenAt[$0.key] ?? .max < held.before }.keys.sorted()
        }
        if let held, !held.isEmpty {
            keptCount += held.count
            send(id, .bootstrapRows(Self.kept(held)))
        }
        sendRows(inView.keys.filter { !(held ?? []).contains($0) }.sorted(), of: items, form: form, after: aside, id)
        if chance(10) { return }
        let isDifference = session.machine.views.isInStep && chance(50)
        if isDifference {
            let gone = items.filter { session.stores.contains($0.value.store) && !wanted.stores.contains($0.value.store) }
            send(
                id,
                .bootstrapRows(
                    make(PBBootstrapRows()) { message in
                        message.type = "Item"
                        message.removed = gone.keys.sorted().map { PBValue(.int($0)) }
                    }))
        }
        end(id, wanted, session, types: isDifference ? [] : ["Item"])
    }

    private static func form(_ stores: Set<String>, _ session: Session) -> UInt64 {
        let held = session.held.map { "\($0.stores.sorted()) \($0.before)" } ?? ""
        return Fingerprint("\(stores.sorted()) \(held)").rawValue
    }

    private static func kept(_ keys: [Int64]) -> PBBootstrapRows {
        make(PBBootstrapRows()) { message in
            message.type = "Item"
            message.kept = keys.map { PBValue(.int($0)) }
        }
    }

    /// Rows that are new to the client, in the order of their keys. Of those that it has put aside it is told the keys, as far as nobody
    /// has written them since.
    private mutating func sendRows(_ keys: [Int64], of items: [Int64: Item], form: UInt64, after aside: Aside?, _ id: UInt64) {
        let before = aside.map { has(.hasty, 100) ? .max : $0.before }
        let known = keys.filter { key in
            guard let aside, let before else { return false }
            return key <= aside.through && writtenAt[key] ?? .max < before
        }
        if !known.isEmpty {
            asideCount += known.count
            send(id, .bootstrapRows(Self.kept(known)))
        }
        let through = aside?.through ?? .min
        for piece in Self.pieces(keys.filter { $0 <= through && !known.contains($0) }) { sendRows(piece, of: items, nil, id) }
        for piece in Self.pieces(keys.filter { $0 > through }) {
            let reached = chance(50) ? piece.last.map { Aside(form: form, before: lsn + 1, through: $0) } : nil
            sendRows(piece, of: items, reached, id)
            if let reached { sessions[id]?.aside = reached }
        }
    }

    private mutating func sendRows(_ keys: ArraySlice<Int64>, of items: [Int64: Item], _ reached: Aside?, _ id: UInt64) {
        let times = times(of: keys, id)
        send(
            id,
            .bootstrapRows(
                make(PBBootstrapRows()) { message in
                    message.type = "Item"
                    message.rows = keys.map { row($0, items) }
                    message.times = times
                    if let reached { message.checkpoint = reached.message }
                }))
    }

    /// The write times of the items that a client has named.
    private func times(of keys: some Sequence<Int64>, _ id: UInt64) -> [PBRowTimes] {
        keys.filter { sessions[id]?.pending.contains($0) == true }.map { key in
            let row = items[key]?.values
            let time = rowTimes[key] ?? wall
            let state = ObjectState(row: row, clocks: clocks[key], type: itemType, rowTime: time, now: LSN(rawValue: lsn))
            return make(PBRowTimes()) {
                $0.primaryKey = PBValue(.int(key))
                $0.times = Data(WriteTimes(state.clocks).encoded)
                $0.commitTime = time
            }
        }
    }

    /// What the log has since the client went: the last word on each item that was in its view or is.
    private mutating func resume(_ id: UInt64, _ wanted: WantedBootstrap, after applied: UInt64, _ session: Session) {
        resumedCount += 1
        let since = log.filter { $0.lsn > applied }
        let was = Set(since.filter { $0.store.map(wanted.stores.contains) ?? false }.map(\.key))
        let (present, gone) = Set(since.map(\.key)).reduce(into: ([Int64](), [Int64]())) { parts, key in
            if let item = items[key], wanted.stores.contains(item.store) {
                parts.0.append(key)
            } else if was.contains(key) {
                parts.1.append(key)
            }
        }
        send(id, .bootstrapBegin(make(PBBootstrapBegin()) { $0.version = wanted.version }))
        let times = times(of: present.sorted(), id)
        let (rows, keys) = (present.sorted().map { row($0, items) }, gone.sorted().map { PBValue(.int($0)) })
        send(
            id,
            .bootstrapRows(
                make(PBBootstrapRows()) {
                    $0.type = "Item"
                    $0.rows = rows
                    $0.removed = keys
                    $0.times = times
                }))
        end(id, wanted, session, types: nil)
    }

    /// - Parameter types: nil: the client's view goes on.
    private mutating func end(_ id: UInt64, _ wanted: WantedBootstrap, _ session: Session, types: [String]?) {
        let (lsn, taken) = (lsn, clients[session.client]?.changeset ?? 0)
        let latest = writeTime
        send(
            id,
            .bootstrapEnd(
                make(PBBootstrapEnd()) {
                    $0.version = wanted.version
                    $0.lsn = lsn
                    $0.types = types ?? []
                    $0.resumed = types == nil
                    $0.changeset = taken
                    $0.writeTime = latest.rawValue
                    $0.held.transaction = lsn + 1
                    $0.held.types = wanted.stores.sorted().map { store in make(PBHeldType()) { $0.name = store } }
                }))
        sessions[id]?.held = (wanted.stores, lsn + 1)
        sessions[id]?.stores = wanted.stores
        sessions[id]?.aside = nil
        finish(wanted, id)
    }

    private static func pieces(_ keys: [Int64]) -> [ArraySlice<Int64>] {
        stride(from: 0, to: keys.count, by: 3).map { keys[$0..<min($0 + 3, keys.count)] }
    }

    func row(_ key: Int64, _ items: [Int64: Item]) -> PBRow {
        let item = items[key] ?? Item(store: "", value: "")
        return PBRow(item.row(key, itemType), type: itemType)
    }

    /// As `bootstrap`, again when one was broken off.
    mutating func bootstrapUntilDone(_ id: UInt64) {
        while sessions[id]?.wanted != nil, sessions[id]?.isClosed == false { bootstrap(id) }
    }
}
