import SluicePorts
import SluiceRealm
import TestSupport

/// Random messages of both sides.
struct MessageSamples {
    var random: SplitMix64

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func number() -> UInt64 {
        switch random.below(4) {
        case 0: UInt64(random.below(3))
        case 1: UInt64(random.below(1_000))
        default: random.next() >> UInt64(1 + random.below(60))
        }
    }

    mutating func text() -> String { random.pick(["", "a", "(age > 3)", "\"quoted\"", "Gödel\n", "💧 ü", "line\u{1}"]) }

    /// Bytes that compress well or not at all.
    mutating func bytes() -> [UInt8] {
        let count = random.pick([0, 1, 7, 40, 3_000])
        let isPlain = random.chance(50)
        return (0..<count).map { _ in isPlain ? 7 : UInt8(truncatingIfNeeded: random.next()) }
    }

    mutating func clientMessage() -> RealmClientMessage {
        let session = number()
        switch random.below(9) {
        case 0:
            return .bind(
                RealmBind(
                    session: session, needsFileIdent: random.chance(50), isSubserver: random.chance(10),
                    reason: random.pick(RealmSessionReason.allCases), schemaVersion: number(),
                    migratedPartition: random.chance(20) ? text() : nil, token: text()))
        case 1:
            return .ident(
                RealmIdent(
                    session: session, file: RealmFileIdent(ident: number(), salt: number()),
                    download: RealmDownloadCursor(serverVersion: number(), clientVersion: number()),
                    latest: RealmServerVersion(version: number(), salt: number()), query: querySet()))
        case 2: return .query(session: session, querySet())
        case 3: return .upload(upload(session))
        case 4: return .mark(session: session, request: number())
        case 5: return .unbind(session: session)
        case 6: return .ping(timestamp: number(), roundTrip: number())
        case 7: return .report(RealmClientReport(session: session, code: number(), message: text()))
        default: return .testCommand(RealmTestCommand(session: session, request: number(), body: text()))
        }
    }

    private mutating func querySet() -> RealmQuerySet {
        var queries: [String: String] = [:]
        for _ in 0..<random.below(4) { queries[random.pick(["Task", "Person", "Ort", "Ö\"x"])] = text() }
        return RealmQuerySet(version: number(), queries: queries)
    }

    private mutating func upload(_ session: UInt64) -> RealmUploadMessage {
        var upload = RealmUploadMessage(
            session: session, progress: RealmUploadProgress(clientVersion: number(), serverVersion: number()),
            lockedServerVersion: number())
        for _ in 0..<random.below(4) {
            upload.entries.append(
                RealmUploadEntry(
                    clientVersion: number(), serverVersion: number(), timestamp: number(), origin: number(), changeset: bytes()))
        }
        return upload
    }

    mutating func serverMessage() -> RealmServerMessage {
        let session = number()
        switch random.below(10) {
        case 0: return .ident(session: session, RealmFileIdent(ident: number(), salt: number()))
        case 1, 2: return .download(download(session))
        case 3: return .mark(session: session, request: number())
        case 4: return .unbound(session: session)
        case 5: return .pong(timestamp: number())
        case 6: return .error(error(session))
        case 7:
            return random.chance(50)
                ? .plainError(RealmPlainError(session: session, code: number(), message: text(), tryAgain: random.chance(50)))
                : .queryError(RealmQueryError(session: session, queryVersion: number(), message: text()))
        case 8:
            return .log(RealmLogMessage(session: session, level: "info", message: text(), connection: random.chance(50) ? text() : nil))
        default: return .testCommand(RealmTestCommand(session: session, request: number(), body: text()))
        }
    }

    private mutating func download(_ session: UInt64) -> RealmDownload {
        let progress = RealmProgress(
            download: RealmDownloadCursor(serverVersion: number(), clientVersion: number()),
            latest: RealmServerVersion(version: number(), salt: number()),
            upload: RealmUploadProgress(clientVersion: number(), serverVersion: number()))
        // Quarters have a short form, so they come back unchanged.
        var download = RealmDownload(
            session: session, progress: progress, queryVersion: number(), batch: random.pick(RealmBatchState.allCases),
            estimate: Double(random.below(5)) / 4)
        for _ in 0..<random.below(4) {
            download.entries.append(
                RealmDownloadEntry(
                    serverVersion: number(), clientVersion: number(), timestamp: number(), origin: number(), originalSize: number(),
                    changeset: bytes()))
        }
        return download
    }

    private mutating func error(_ session: UInt64) -> RealmServerError {
        if random.chance(30) {
            let rejected = (0..<random.below(3)).map { _ in RealmRejectedUpdate(reason: text(), table: text(), key: bytes()) }
            return RealmServerError(
                session: session + 1, RealmCompensation(serverVersion: number(), clientVersion: number(), rejected: rejected))
        }
        let code = random.pick(RealmErrorCode.allCases.filter { $0 != .compensatingWrite })
        return RealmServerError(
            session: code.isOfConnection ? 0 : session + 1, code: code, message: text(), action: random.pick(RealmErrorAction.allCases),
            tryAgain: random.chance(50),
            backoff: random.chance(30) ? RealmBackoff(seconds: 1, maximumSeconds: number(), multiplier: 2) : nil)
    }
}
