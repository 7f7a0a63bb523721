package import SluiceCore
import SluicePorts
import SluiceValues

// The server's messages, as a client reads them.
extension RealmCodec {
    /// Decodes a message of the server.
    package func decodeServer(_ bytes: [UInt8]) throws(SluiceError) -> RealmServerMessage {
        var reader = try reader(bytes)
        let name = try reader.name()
        switch name {
        case "download": return .download(try download(&reader))
        case "json_error": return .error(try error(&reader))
        case "error": return .plainError(try plainError(&reader))
        case "query_error": return .queryError(try queryError(&reader))
        case "log_message": return .log(try log(&reader))
        case "test_command": return .testCommand(try testCommand(&reader))
        default: return try short(name, &reader)
        }
    }

    /// Reads a message without a body.
    private func short(_ name: String, _ reader: inout TokenReader) throws(SluiceError) -> RealmServerMessage {
        let message: RealmServerMessage
        switch name {
        case "ident":
            let session = try reader.number("session_ident")
            let file = RealmFileIdent(ident: try reader.number("client_file_ident"), salt: try reader.number("client_file_ident_salt"))
            message = .ident(session: session, file)
        case "mark":
            message = .mark(session: try reader.number("session_ident"), request: try reader.number("request_ident"))
        case "unbound": message = .unbound(session: try reader.number("session_ident"))
        case "pong": message = .pong(timestamp: try reader.number("timestamp"))
        default: throw Self.unknown(name)
        }
        try end(&reader)
        return message
    }

    private func download(_ reader: inout TokenReader) throws(SluiceError) -> RealmDownload {
        let session = try reader.number("session_ident")
        var progress = RealmProgress()
        progress.download.serverVersion = try reader.number("download.server_version")
        progress.download.clientVersion = try reader.number("download.client_version")
        progress.latest.version = try reader.number("latest_server_version")
        progress.latest.salt = try reader.number("latest_server_version_salt")
        progress.upload.clientVersion = try reader.number("upload.client_version")
        progress.upload.serverVersion = try reader.number("upload.server_version")
        let queryVersion = try reader.number("query_version")
        guard let batch = RealmBatchState(rawValue: try reader.number("batch_state")) else {
            throw SluiceError(.badSyntax, "The batch_state is not known.")
        }
        let estimate = try reader.fraction("progress_estimate")
        let entries = try entries(&reader) { (reader: inout TokenReader) throws(SluiceError) in
            RealmDownloadEntry(
                serverVersion: try reader.number("server_version"), clientVersion: try reader.number("client_version"),
                timestamp: try reader.number("origin_timestamp"), origin: try reader.number("origin_file_ident"),
                originalSize: try reader.number("original_changeset_size"), changeset: try changeset(&reader))
        }
        return RealmDownload(
            session: session, progress: progress, queryVersion: queryVersion, batch: batch, estimate: estimate, entries: entries)
    }

    private func plainError(_ reader: inout TokenReader) throws(SluiceError) -> RealmPlainError {
        let code = try reader.number("error_code")
        let size = try reader.size("message_size", atMost: limits.messageBytes)
        let tryAgain = try reader.flag("try_again")
        let session = try reader.number("session_ident")
        try reader.endLine()
        let message = try reader.text(size, "message")
        try reader.finish()
        return RealmPlainError(session: session, code: code, message: message, tryAgain: tryAgain)
    }

    private func queryError(_ reader: inout TokenReader) throws(SluiceError) -> RealmQueryError {
        guard try reader.number("error_code") == RealmErrorCode.badQuery.rawValue else {
            throw SluiceError(.badSyntax, "The code of a query error is not 226.")
        }
        let size = try reader.size("message_size", atMost: limits.messageBytes)
        let session = try reader.number("session_ident")
        let version = try reader.number("query_version")
        try reader.endLine()
        let message = try reader.text(size, "message")
        try reader.finish()
        return RealmQueryError(session: session, queryVersion: version, message: message)
    }

    private func log(_ reader: inout TokenReader) throws(SluiceError) -> RealmLogMessage {
        let session = try reader.number("session_ident")
        let size = try reader.size("json_size", atMost: limits.messageBytes)
        try reader.endLine()
        let json = try JSON.parse(try reader.take(size, "json_size"))
        try reader.finish()
        guard let level = json["level"]?.string, let message = json["msg"]?.string else {
            throw SluiceError(.badSyntax, "A log message has no level or no text.")
        }
        return RealmLogMessage(session: session, level: level, message: message, connection: json["co_id"]?.string)
    }

    // MARK: Errors

    private func error(_ reader: inout TokenReader) throws(SluiceError) -> RealmServerError {
        let number = try reader.number("error_code")
        let size = try reader.size("json_size", atMost: limits.messageBytes)
        let session = try reader.number("session_ident")
        try reader.endLine()
        let json = try JSON.parse(try reader.take(size, "json_size"))
        try reader.finish()
        guard let code = RealmErrorCode(rawValue: number), code.isOfConnection == (session == 0) else {
            throw SluiceError(.badSyntax, "The error code \(number) is not sent for session \(session).")
        }
        guard let message = json["message"]?.string, let tryAgain = json["tryAgain"]?.bool, json["logURL"]?.string != nil,
            json["shouldClientReset"]?.bool != nil, json["isRecoveryModeDisabled"]?.bool != nil, let name = json["action"]?.string
        else { throw SluiceError(.badSyntax, "An error lacks a required member.") }
        // Clients take an unknown action for this one.
        let action = RealmErrorAction(rawValue: name) ?? .applicationBug
        var error = RealmServerError(session: session, code: code, message: message, action: action, tryAgain: tryAgain)
        if json["backoffIntervalSec"] != nil {
            error.backoff = RealmBackoff(
                seconds: try self.number(json, "backoffIntervalSec"), maximumSeconds: try self.number(json, "backoffMaxDelaySec"),
                multiplier: try self.number(json, "backoffMultiplier"))
        }
        if code == .compensatingWrite { error.compensation = try compensation(json) }
        return error
    }

    private func compensation(_ json: JSON) throws(SluiceError) -> RealmCompensation {
        var rejected: [RealmRejectedUpdate] = []
        for update in json["rejectedUpdates"]?.array ?? [] {
            guard let reason = update["reason"]?.string, let table = update["table"]?.string, let text = update["pk"]?.string,
                let key = Base64.decode(text)
            else { throw SluiceError(.badSyntax, "A rejected update lacks a member.") }
            rejected.append(RealmRejectedUpdate(reason: reason, table: table, key: key))
        }
        return RealmCompensation(
            serverVersion: try number(json, "compensatingWriteServerVersion"),
            clientVersion: try number(json, "rejectedClientVersion"), rejected: rejected)
    }
}
