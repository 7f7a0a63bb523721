package import SluiceCore
import SluicePorts
import SluiceValues

// The server's messages.
extension RealmCodec {
    /// Encodes a message of the server.
    ///
    /// - Throws: `internalError` for an error whose code does not fit its session: the client would take it for a broken protocol.
    package func encode(_ message: RealmServerMessage) throws(SluiceError) -> [UInt8] {
        switch message {
        case .ident(let session, let file): return TokenWriter("ident", [session, file.ident, file.salt]).bytes
        case .download(let download): return try encode(download)
        case .mark(let session, let request): return TokenWriter("mark", [session, request]).bytes
        case .unbound(let session): return TokenWriter("unbound", [session]).bytes
        case .pong(let timestamp): return TokenWriter("pong", [timestamp]).bytes
        case .error(let error): return try encode(error)
        case .plainError(let error):
            let body = Array(error.message.utf8)
            return TokenWriter("error", [error.code, UInt64(body.count), error.tryAgain ? 1 : 0, error.session], body: body).bytes
        case .queryError(let error):
            let body = Array(error.message.utf8)
            let fields = [RealmErrorCode.badQuery.rawValue, UInt64(body.count), error.session, error.queryVersion]
            return TokenWriter("query_error", fields, body: body).bytes
        case .log(let message):
            var members = [JSON.Member("level", .string(message.level)), JSON.Member("msg", .string(message.message))]
            if let connection = message.connection { members.append(JSON.Member("co_id", .string(connection))) }
            let body = JSON.object(members).utf8
            return TokenWriter("log_message", [message.session, UInt64(body.count)], body: body).bytes
        case .testCommand(let command): return encode(command)
        }
    }

    private func encode(_ download: RealmDownload) throws(SluiceError) -> [UInt8] {
        let size = download.entries.reduce(0) { $0 + Self.size($1) }
        // A body that is not compressed follows its header at once.
        guard size > limits.plainBytes else {
            var writer = Self.header(download, [0, UInt64(size), 0], room: size)
            for entry in download.entries { Self.write(entry, to: &writer) }
            return writer.bytes
        }
        var content = TokenWriter()
        for entry in download.entries { Self.write(entry, to: &content) }
        let (sizes, body) = try packed(content.bytes)
        var writer = Self.header(download, sizes, room: body.count)
        writer.append(body)
        return writer.bytes
    }

    private static func header(_ download: RealmDownload, _ sizes: [UInt64], room: Int) -> TokenWriter {
        let progress = download.progress
        var writer = TokenWriter("download", room: room)
        writer.field(download.session)
        writer.field(progress.download.serverVersion)
        writer.field(progress.download.clientVersion)
        writer.field(progress.latest.version)
        writer.field(progress.latest.salt)
        writer.field(progress.upload.clientVersion)
        writer.field(progress.upload.serverVersion)
        writer.field(download.queryVersion)
        writer.field(download.batch.rawValue)
        writer.field(text(download.estimate))
        for size in sizes { writer.field(size) }
        writer.endLine()
        return writer
    }

    private static func write(_ entry: RealmDownloadEntry, to writer: inout TokenWriter) {
        writer.number(entry.serverVersion)
        writer.number(entry.clientVersion)
        writer.number(entry.timestamp)
        writer.number(entry.origin)
        writer.number(entry.originalSize)
        writer.number(UInt64(entry.changeset.count))
        writer.append(entry.changeset)
    }

    /// Returns the number of bytes that `write` writes.
    private static func size(_ entry: RealmDownloadEntry) -> Int {
        let numbers =
            TokenWriter.digits(of: entry.serverVersion) + TokenWriter.digits(of: entry.clientVersion)
            + TokenWriter.digits(of: entry.timestamp) + TokenWriter.digits(of: entry.origin)
            + TokenWriter.digits(of: entry.originalSize) + TokenWriter.digits(of: UInt64(entry.changeset.count))
        return numbers + 6 + entry.changeset.count
    }

    /// Returns a fraction with four digits and no exponent. Only 1 and above become 1, which ends a bootstrap's progress.
    static func text(_ fraction: Double) -> String {
        // A comparison with NaN is false, so it becomes 0.
        let parts = fraction >= 1 ? 10_000 : fraction > 0 ? min(9_999, Int((fraction * 10_000).rounded())) : 0
        guard !parts.isMultiple(of: 10_000) else { return String(parts / 10_000) }
        let digits = String(parts)
        return "0." + String(repeating: "0", count: 4 - digits.count) + digits
    }

    private func encode(_ error: RealmServerError) throws(SluiceError) -> [UInt8] {
        guard error.code.isOfConnection == (error.session == 0), (error.code == .compensatingWrite) == (error.compensation != nil) else {
            throw SluiceError(.internalError, "The error \(error.code.rawValue) does not fit its session or its content.")
        }
        var members = [
            JSON.Member("message", .string(error.message)), JSON.Member("tryAgain", .bool(error.tryAgain)),
            JSON.Member("logURL", .string("")), JSON.Member("shouldClientReset", .bool(error.action.isReset)),
            JSON.Member("isRecoveryModeDisabled", .bool(error.action == .clientResetNoRecovery)),
            JSON.Member("action", .string(error.action.rawValue)),
        ]
        if let backoff = error.backoff {
            members.append(JSON.Member("backoffIntervalSec", .int(Int64(clamping: backoff.seconds))))
            members.append(JSON.Member("backoffMaxDelaySec", .int(Int64(clamping: backoff.maximumSeconds))))
            members.append(JSON.Member("backoffMultiplier", .int(Int64(clamping: backoff.multiplier))))
        }
        if let compensation = error.compensation { members += Self.members(compensation) }
        let body = JSON.object(members).utf8
        return TokenWriter("json_error", [error.code.rawValue, UInt64(body.count), error.session], body: body).bytes
    }

    private static func members(_ compensation: RealmCompensation) -> [JSON.Member] {
        let rejected = compensation.rejected.map { update -> JSON in
            ["reason": .string(update.reason), "table": .string(update.table), "pk": .string(Base64.encode(update.key))]
        }
        return [
            JSON.Member("compensatingWriteServerVersion", .int(Int64(clamping: compensation.serverVersion))),
            JSON.Member("rejectedClientVersion", .int(Int64(clamping: compensation.clientVersion))),
            JSON.Member("rejectedUpdates", .array(rejected)),
        ]
    }
}
