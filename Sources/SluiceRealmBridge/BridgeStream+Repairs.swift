import SluiceCore
import SluicePorts
import SluiceRealm
import SluiceWire

// The objects of which the client may have another state than the server: after writes without effect, and after undone ones.
extension BridgeStream {
    /// Rows of a position that the stream must reach before it sends them: a client reads its lists at the position of an entry.
    struct Reading {
        var objects: Set<ObjectKey>
        /// Those in the view.
        var rows: [ObjectKey: Row] = [:]
        /// The objects that the stream has met since. Their rows are those of the stream.
        var met: Set<ObjectKey> = []
        /// A position at or after all changes in the rows; nil until the rows are read.
        var position: LSN?
    }

    /// What a client must receive again of an object.
    enum Repair: Hashable {
        case whole
        /// An object that the user does not see leaves, and one that the client lacks enters, also without properties.
        case properties(Set<String>)

        /// The properties; nil for the whole object.
        var names: Set<String>? { if case .properties(let names) = self { names } else { nil } }

        /// Adds properties.
        mutating func form(_ more: Set<String>) { if case .properties(let names) = self { self = .properties(names.union(more)) } }
    }

    /// Compensating writes that wait for their entry.
    struct Compensation {
        var number: UInt64
        var changeset: UInt64
        var writes: [RejectedWriteReport]
    }

    /// A changeset with rejected writes. Those of asymmetric classes have a compensating write of their own.
    struct ReportedChangeset: Hashable {
        var number: UInt64
        var isAsymmetric: Bool
    }

    // MARK: Repairs

    /// Compares an object with the server once the stream is in step: one that the user does not see leaves, and one that the content lacks
    /// is given to the client, which may have it.
    mutating func compare(_ object: ObjectKey) { if repairs[object] == nil { repairs[object] = .properties([]) } }

    mutating func compensate(_ number: UInt64, _ writes: [RejectedWriteReport]) {
        guard let first = writes.first, replica.compensations[number] == nil else { return }
        let isAsymmetric = schema[first.object.type]?.kind == .asymmetric
        // The stored stream has it already.
        if let version = reported[ReportedChangeset(number: first.changeset, isAsymmetric: isAsymmetric)] {
            replica.compensations[number] = version
            return
        }
        compensations.append(Compensation(number: number, changeset: first.changeset, writes: writes))
    }

    /// The compensating writes whose changeset the stream has passed.
    private var ready: [Compensation] { compensations.filter { own[$0.changeset] == nil } }

    /// The objects whose current rows `repair` needs; empty for none.
    var unresolved: Set<ObjectKey> {
        guard !isBehind, !isBuilding, fallback == nil else { return [] }
        return Set(repairs.keys).union(ready.flatMap { $0.writes.map(\.object) })
    }

    /// `false` if nothing is to be put right.
    var mayRepair: Bool { !repairs.isEmpty || !compensations.isEmpty }

    /// Takes rows that were read for `reading`.
    /// - Parameter position: A position at or after all changes in them.
    mutating func take(_ rows: [ObjectKey: Row], at position: LSN) {
        guard var reading else { return }
        reading.rows.merge(rows.filter { !reading.met.contains($0.key) }) { $1 }
        reading.position = position
        self.reading = reading
    }

    /// Puts objects right at the client, once the stream has the position of their rows.
    mutating func repair() throws(SluiceError) -> [RealmViewEvent] {
        guard let reading, let position = reading.position, replica.lsn >= position, !unresolved.isEmpty else { return [] }
        self.reading = nil
        let rows = reading.rows
        var entries: [OutgoingEntry] = []
        let compensated = ready.filter { $0.writes.allSatisfy { reading.objects.contains($0.object) } }
        let undone = Set(compensated.flatMap { $0.writes.map(\.object) })
        let objects = repairs.filter { !undone.contains($0.key) && reading.objects.contains($0.key) }
        repairs = repairs.filter { !reading.objects.contains($0.key) }
        let numbers = Set(compensated.map(\.number))
        compensations.removeAll { numbers.contains($0.number) }
        if !objects.isEmpty {
            let place = nextPlace
            var piece = BridgePiece()
            for (object, repair) in objects {
                let groups = try self.repair(object, rows[object], repair.names, place)
                if !groups.allSatisfy(\.isEmpty) { repaired[object] = place.version }
                for group in groups { try piece.append(group) }
            }
            if !piece.isEmpty { entries.append(append(piece, place)) }
        }
        for compensation in compensated { entries.append(try undo(compensation, rows)) }
        let changes: [RealmViewEvent] = entries.isEmpty ? [] : [.changes(entries)]
        return unresolved.isEmpty ? changes + advanced(to: replica.lsn) : changes
    }

    private var nextPlace: BridgeContent.Place {
        BridgeContent.Place(version: max(content.last + 1, replica.lsn.rawValue), time: now)
    }

    private mutating func append(
        _ piece: BridgePiece, _ place: BridgeContent.Place, _ compensation: RealmCompensation? = nil
    ) -> OutgoingEntry {
        let entry = entry(piece, place, compensation)
        content.last = place.version
        steps.add(place.version, replica.lsn, time: .zero)
        return entry
    }

    private mutating func repair(
        _ object: ObjectKey, _ row: Row?, _ names: Set<String>?, _ place: BridgeContent.Place
    ) throws(SluiceError) -> [BridgeGroup] {
        // A client keeps no object of an asymmetric class, so the entry of its compensating write is empty.
        guard schema[object.type]?.kind == .topLevel else { return [] }
        // The client may hold it even if the content lacks it, as it has written it.
        guard let row else { return [content.leave(object, place)] }
        guard let names else { return [.entering(try content.enter(object, row, place))] }
        guard content.memory.view.contains(object) else {
            // If a view begins before the client has the entry, the content does not tell if the client holds the object.
            uncertain = max(uncertain, place.version)
            return try content.restore(object, row, place)
        }
        return [try content.replace(object, row, names, place)]
    }

    private mutating func undo(_ compensation: Compensation, _ rows: [ObjectKey: Row]) throws(SluiceError) -> OutgoingEntry {
        let place = nextPlace
        var (piece, rejected) = (BridgePiece(), [RealmRejectedUpdate]())
        var done: Set<ObjectKey> = []
        for write in compensation.writes {
            rejected.append(RealmRejectedUpdate(write))
            guard done.insert(write.object).inserted else { continue }
            repaired[write.object] = place.version
            for group in try repair(write.object, rows[write.object], nil, place) { try piece.append(group) }
        }
        replica.compensations[compensation.number] = place.version
        let notice = RealmCompensation(serverVersion: place.version, clientVersion: compensation.changeset, rejected: rejected)
        return append(piece, place, notice)
    }
}

extension BridgeStream.Reading {
    /// Replaces the row of an object by that of a commit.
    mutating func meet(_ change: BridgeCommit.Change) {
        guard objects.contains(change.object) else { return }
        met.insert(change.object)
        rows[change.object] = change.event.hasRow ? change.row : nil
    }
}
