import SluiceCore

@testable import SluiceRealm

/// A model of a server: the integration of uploaded changesets without operational transform, and the entries for each file.
///
/// The server decides every conflict in one order, that of its versions. Clients transform an entry over their pending changes. So the
/// rules answer as that transform does, and where it could end differently, all holders receive the content anew:
///
/// - A write is concurrent with another file's if its base is older. Only then do stamps decide.
/// - An erasure in a file's stream is an erasure barrier. The file's changes with an older base are void. "Erase wins" voids them on the
///   client too.
/// - A list with concurrent edits is sent as a whole.
/// - A write that is not allowed is undone: the writer receives the object as it is, behind a barrier.
///
/// It states the rules of the gateway in one value, and holds the server's objects itself. The plays check that clients converge by these
/// rules. In a gateway, the pipeline's merge and `SluiceRealmBridge` follow them.
///
/// Memory is bounded by `RealmIntegrationBounds`. A file with a base older than the remembered history of a property gets `badClientFile`:
/// it is reset, and recovers its changes. An upload costs O(files × changed objects).
struct RealmIntegration: Sendable {
    /// The file ident of the server's own entries.
    static let server: UInt64 = 1

    let bounds: RealmIntegrationBounds
    /// The last version of the server.
    private(set) var version: UInt64
    var objects: [ObjectKey: RealmIntegratedObject] = [:]
    var files: [UInt64: RealmFileMemory] = [:]

    init(version: UInt64 = 1, bounds: RealmIntegrationBounds = RealmIntegrationBounds()) {
        (self.version, self.bounds) = (version, bounds)
    }

    /// Adds a file without a view. `bootstrap(_:rules:now:isResend:)` follows.
    mutating func add(_ file: UInt64) { files[file] = RealmFileMemory() }

    /// Forgets a file. Its history no longer needs memory.
    mutating func remove(_ file: UInt64) { files[file] = nil }

    /// Records the progress of an UPLOAD: the server version that it confirms, and the last client version, which may have no changeset.
    ///
    /// The cursor of an IDENT must not be passed: changesets that are still pending have older bases.
    mutating func confirm(_ file: UInt64, clientVersion: UInt64, base: UInt64) {
        files[file]?.advance(clientVersion, base: min(base, version))
    }

    /// The version that every file has seen.
    var horizon: UInt64 { files.values.reduce(version) { min($0, $1.base) } }

    mutating func nextVersion() -> UInt64 {
        version += 1
        return version
    }

    // MARK: Uploads

    /// Integrates one changeset of a file.
    ///
    /// - Parameter now: Milliseconds since 2015-01-01, by the server's clock.
    /// - Returns: The effects. Nil for a changeset that has taken effect already.
    /// - Throws: `badClientFile` if the file is unknown or the history for its base is gone. `badChangeset` for a base that goes back, or
    ///   that the server has not reached. The integration is then unchanged.
    mutating func integrate(
        _ upload: RealmUploadedChangeset, rules: some RealmViewRules, now: UInt64
    ) throws(SluiceError) -> RealmIntegrationResult? {
        guard let file = files[upload.file] else { throw Self.reset("is not known") }
        if upload.clientVersion <= file.clientVersion { return nil }
        try check(upload, file)
        let version = nextVersion()
        let stamp = RealmStamp(upload.time, upload.file)
        var work = RealmUploadWork(writer: RealmWriter(stamp: stamp, base: upload.base, version: version), file: file)
        for instruction in upload.instructions {
            if let key = instruction.object { work.apply(instruction, key, objects[key]) }
        }
        work.check(rules)
        for (key, state) in work.states where state.rejection == nil { objects[key] = state.after }
        files[upload.file] = work.file
        files[upload.file]?.advance(upload.clientVersion, base: upload.base)
        var result = RealmIntegrationResult(serverVersion: version)
        result.rejected = work.states.compactMapValues(\.rejection)
        for file in files.keys.sorted() {
            let instructions = deliver(work, to: file, rules: rules, now: now)
            if instructions.isEmpty { continue }
            result.deliveries[file] = RealmDelivery(
                serverVersion: version, clientVersion: files[file]?.clientVersion ?? 0,
                stamp: file == upload.file ? RealmStamp(now, Self.server) : stamp, instructions: instructions)
        }
        result.resets = enforceBounds()
        result.resets.forEach { result.deliveries[$0] = nil }
        let horizon = horizon
        for key in work.order { objects[key]?.prune(seenByAll: horizon, bounds) }
        return result
    }

    private func check(_ upload: RealmUploadedChangeset, _ file: RealmFileMemory) throws(SluiceError) {
        guard upload.base <= version, upload.base >= file.base else {
            throw SluiceError(
                .badChangeset, "Changeset \(upload.clientVersion) of file \(upload.file) has the base \(upload.base).",
                value: "\(upload.base)", fix: "A base is between \(file.base), which the file has confirmed, and \(version).")
        }
        for instruction in upload.instructions {
            guard let path = instruction.path, let object = objects[path.object] else { continue }
            if !object.admits(upload.file, base: upload.base, to: path.field) {
                throw Self.reset("has not seen the remembered history of '\(path.object.type).\(path.field)'")
            }
        }
    }

    private static func reset(_ problem: String) -> SluiceError {
        SluiceError(
            .badClientFile, "The client file \(problem).",
            fix: "The client replaces its file and recovers its changes. No action is needed.")
    }

    /// Forgets the files with too many barriers.
    func excessFiles() -> Set<UInt64> { Set(files.filter { $0.value.barriers.count > bounds.barriers }.keys) }

    mutating func enforceBounds() -> Set<UInt64> {
        let excess = excessFiles()
        for file in excess { files[file] = nil }
        return excess
    }
}
