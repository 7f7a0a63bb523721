import SluiceCore
import SluicePorts
import SluiceRealm

@testable import SluiceRealmBridge

/// The file of an app: the objects that it shows, and the changesets that the server has not acknowledged.
///
/// Entries merge with pending changes as in an SDK: of two writes of a value the one with the later stamp stays, and an erasure beats
/// everything but a later creation of its own.
struct PlayingApp {
    struct Change: Hashable {
        var object: ObjectKey
        /// Nil for a creation or an erasure.
        var field: String?
        var value = Value.null
        var isErasure = false
    }

    struct Pending {
        var entry: RealmUploadEntry
        var changes: [Change]
    }

    let clock: UInt64
    private(set) var objects: [ObjectKey: [String: Value]] = [:]
    private(set) var pending: [Pending] = []
    /// The mistakes that would have stopped an SDK.
    private(set) var faults: [String] = []
    private(set) var cursor = RealmDownloadCursor()
    private(set) var latest: UInt64 = 0
    private(set) var version: UInt64 = 1
    private var file: UInt64 = 0
    /// The query version of the last whole bootstrap.
    private(set) var view: UInt64 = 0
    /// The parts of a bootstrap, which stay over connections until a part of another one comes.
    private var parts: (version: UInt64, entries: [RealmDownloadEntry]) = (0, [])

    /// - Parameter clock: The offset of the app's clock, in milliseconds.
    init(clock: UInt64) { self.clock = clock }

    mutating func take(_ file: RealmFileIdent) { self.file = file.ident }

    // MARK: The app

    /// Commits changes in one transaction.
    mutating func write(_ changes: [Change], at time: UInt64) throws {
        version += 2
        var instructions: [RealmInstruction] = []
        for change in changes {
            if change.isErasure {
                instructions.append(.eraseObject(change.object))
            } else if let field = change.field {
                instructions.append(.update(RealmPath(change.object, field), .value(change.value)))
            } else {
                instructions.append(.createObject(change.object))
            }
            Self.apply(change, to: &objects)
        }
        let entry = RealmUploadEntry(
            clientVersion: version, serverVersion: cursor.serverVersion, timestamp: time + clock, origin: 0,
            changeset: try RealmChangesetWriter.bytes(of: instructions))
        pending.append(Pending(entry: entry, changes: changes))
    }

    private static func apply(_ change: Change, to objects: inout [ObjectKey: [String: Value]]) {
        if change.isErasure {
            objects[change.object] = nil
        } else if let field = change.field {
            objects[change.object]?[field] = change.value
        } else if objects[change.object] == nil {
            objects[change.object] = [:]
        }
    }

    // MARK: The server

    mutating func take(_ download: RealmDownload) throws {
        var entries = download.entries
        if download.batch != .steadyState {
            if parts.version != download.queryVersion { parts = (download.queryVersion, []) }
            parts.entries += entries
            guard download.batch == .lastInBatch else { return }
            (entries, parts, view) = (parts.entries, (0, []), download.queryVersion)
        }
        for entry in entries {
            for instruction in try RealmChangesetReader.instructions(of: entry.changeset) { take(instruction, entry) }
        }
        cursor = download.progress.download
        latest = download.progress.latest.version
        version += 1
        pending.removeAll { $0.entry.clientVersion <= download.progress.upload.clientVersion }
    }

    private mutating func take(_ instruction: RealmInstruction, _ entry: RealmDownloadEntry) {
        switch instruction {
        case .eraseObject(let object): erase(object, entry)
        case .createObject(let object): if !isErased(object, entry), objects[object] == nil { objects[object] = [:] }
        case .update(let path, .value(let value), _): update(path, value, entry)
        case .clear(let path, _): if !isKnown(path.object, entry) { faults.append("a Clear in \(path.object), which is missing") }
        case .addTable, .addColumn: break
        default: faults.append("\(instruction)")
        }
    }

    /// The pending changesets that the server did not have when it made an entry.
    private func concurrent(_ entry: RealmDownloadEntry) -> [Int] {
        pending.indices.filter { pending[$0].entry.clientVersion > entry.clientVersion }
    }

    private func isErased(_ object: ObjectKey, _ entry: RealmDownloadEntry) -> Bool {
        concurrent(entry).contains { pending[$0].changes.contains { $0.object == object && $0.isErasure } }
    }

    private func isKnown(_ object: ObjectKey, _ entry: RealmDownloadEntry) -> Bool {
        objects[object] != nil || isErased(object, entry)
    }

    private mutating func erase(_ object: ObjectKey, _ entry: RealmDownloadEntry) {
        // An own erasure with a later stamp keeps what follows it.
        for index in concurrent(entry) {
            let own = pending[index].entry
            let isLater = (own.timestamp, file) > (entry.timestamp, entry.origin)
            if let erasure = pending[index].changes.firstIndex(where: { $0.object == object && $0.isErasure }), isLater {
                let later = pending[index].changes[erasure...]
                pending[index].changes = pending[index].changes[..<erasure].filter { $0.object != object } + later
                return
            }
            pending[index].changes.removeAll { $0.object == object }
        }
        objects[object] = nil
    }

    private mutating func update(_ path: RealmPath, _ value: Value, _ entry: RealmDownloadEntry) {
        guard isKnown(path.object, entry) else { return faults.append("an update of \(path.object), which is missing") }
        let isBeaten = concurrent(entry).contains { index in
            let own = pending[index]
            return (own.entry.timestamp, file) > (entry.timestamp, entry.origin)
                && own.changes.contains { $0.object == path.object && $0.field == path.field }
        }
        if !isBeaten { objects[path.object]?[path.field] = value }
    }
}
