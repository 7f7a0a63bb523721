package import SluiceCore
import SluicePorts
import SluiceValues

// The client's messages.
extension RealmCodec {
    /// Decodes a message of the client.
    package func decodeClient(_ bytes: [UInt8]) throws(SluiceError) -> RealmClientMessage {
        var reader = try reader(bytes)
        let name = try reader.name()
        switch name {
        case "bind": return .bind(try bind(&reader))
        case "ident": return .ident(try ident(&reader))
        case "query": return try query(&reader)
        case "upload": return .upload(try upload(&reader))
        case "mark":
            let message = RealmClientMessage.mark(
                session: try reader.number("session_ident"), request: try reader.number("request_ident"))
            try end(&reader)
            return message
        case "unbind":
            let message = RealmClientMessage.unbind(session: try reader.number("session_ident"))
            try end(&reader)
            return message
        case "ping":
            let message = RealmClientMessage.ping(timestamp: try reader.number("timestamp"), roundTrip: try reader.number("rtt"))
            try end(&reader)
            return message
        case "json_error": return .report(try report(&reader))
        case "test_command": return .testCommand(try testCommand(&reader))
        default: throw Self.unknown(name)
        }
    }

    /// Ends a message without a body.
    func end(_ reader: inout TokenReader) throws(SluiceError) {
        try reader.endLine()
        try reader.finish()
    }

    private func bind(_ reader: inout TokenReader) throws(SluiceError) -> RealmBind {
        let session = try reader.number("session_ident")
        let size = try reader.size("json_size", atMost: limits.messageBytes)
        let tokenSize = try reader.size("token_size", atMost: limits.messageBytes)
        var bind = RealmBind(
            session: session, needsFileIdent: try reader.flag("need_client_file_ident"), isSubserver: try reader.flag("is_subserver"))
        try reader.endLine()
        let body = try reader.take(size, "json_size")
        bind.token = try reader.text(tokenSize, "token")
        try reader.finish()
        // Before protocol 8 the message had no JSON.
        guard !body.isEmpty else { return bind }
        let json = try JSON.parse(body)
        guard json.members != nil else { throw SluiceError(.badSyntax, "The body of bind is no JSON object.") }
        let (reason, version) = (try number(json, "sessionReason"), try number(json, "schemaVersion"))
        guard let known = RealmSessionReason(rawValue: reason) else {
            throw SluiceError(.badSyntax, "The sessionReason \(reason) is not known.", fix: "Use a supported SDK.")
        }
        (bind.reason, bind.schemaVersion) = (known, version)
        bind.migratedPartition = json["migratedPartition"]?.string
        return bind
    }

    /// Returns a member that is a number from 0; 0 if it is missing.
    func number(_ json: JSON, _ key: String) throws(SluiceError) -> UInt64 {
        guard let value = json[key] else { return 0 }
        guard let number = value.int, number >= 0 else { throw SluiceError(.badSyntax, "\(key) is not a number from 0.") }
        return UInt64(number)
    }

    private func ident(_ reader: inout TokenReader) throws(SluiceError) -> RealmIdent {
        let session = try reader.number("session_ident")
        let file = RealmFileIdent(ident: try reader.number("client_file_ident"), salt: try reader.number("client_file_ident_salt"))
        let download = RealmDownloadCursor(
            serverVersion: try reader.number("download.server_version"), clientVersion: try reader.number("download.client_version"))
        let latest = RealmServerVersion(
            version: try reader.number("latest_server_version"), salt: try reader.number("latest_server_version_salt"))
        return RealmIdent(session: session, file: file, download: download, latest: latest, query: try querySet(&reader))
    }

    private func query(_ reader: inout TokenReader) throws(SluiceError) -> RealmClientMessage {
        let session = try reader.number("session_ident")
        return .query(session: session, try querySet(&reader))
    }

    /// Reads a version, a size and the queries to the message's end.
    private func querySet(_ reader: inout TokenReader) throws(SluiceError) -> RealmQuerySet {
        let version = try reader.number("query_version")
        let size = try reader.size("query_size", atMost: limits.messageBytes)
        try reader.endLine()
        let body = try reader.take(size, "query_size")
        try reader.finish()
        guard !body.isEmpty else { return RealmQuerySet(version: version, queries: [:]) }
        guard case .object(let members) = try JSON.parse(body) else { throw SluiceError(.badSyntax, "The queries are no JSON object.") }
        var queries: [String: String] = [:]
        for member in members {
            guard let text = member.value.string else {
                throw SluiceError(.badSyntax, "The query of a class is no text.", value: String(member.key.prefix(80)))
            }
            guard queries.updateValue(text, forKey: member.key) == nil else {
                throw SluiceError(.badSyntax, "A class has two queries.", value: String(member.key.prefix(80)))
            }
        }
        return RealmQuerySet(version: version, queries: queries)
    }

    /// Returns the size of a message; of a compressed upload, the size of the body that its header names.
    package func workBytes(ofClient bytes: [UInt8]) -> Int {
        var reader = TokenReader(bytes)
        do throws(SluiceError) {
            guard try reader.name() == "upload" else { return bytes.count }
            _ = try reader.number("session_ident")
            guard try reader.flag("is_compressed") else { return bytes.count }
            return max(bytes.count, Int(clamping: try reader.number("uncompressed_size")))
        } catch {
            // The decoding fails as early.
            return bytes.count
        }
    }

    private func upload(_ reader: inout TokenReader) throws(SluiceError) -> RealmUploadMessage {
        var upload = RealmUploadMessage(session: try reader.number("session_ident"), progress: RealmUploadProgress())
        upload.entries = try entries(&reader) { (reader: inout TokenReader) throws(SluiceError) in
            RealmUploadEntry(
                clientVersion: try reader.number("client_version"), serverVersion: try reader.number("server_version"),
                timestamp: try reader.number("origin_timestamp"), origin: try reader.number("origin_file_ident"),
                changeset: try changeset(&reader))
        } header: { (reader: inout TokenReader) throws(SluiceError) in
            upload.progress = RealmUploadProgress(
                clientVersion: try reader.number("progress_client_version"), serverVersion: try reader.number("progress_server_version"))
            upload.lockedServerVersion = try reader.number("locked_server_version")
        }
        return upload
    }

    private func report(_ reader: inout TokenReader) throws(SluiceError) -> RealmClientReport {
        let code = try reader.number("error_code")
        let size = try reader.size("json_size", atMost: limits.messageBytes)
        let session = try reader.number("session_ident")
        try reader.endLine()
        let body = try reader.take(size, "json_size")
        try reader.finish()
        guard let message = try JSON.parse(body)["message"]?.string else { throw SluiceError(.badSyntax, "An error has no message.") }
        return RealmClientReport(session: session, code: code, message: message)
    }

    // MARK: Encoding

    /// Encodes a message of a client.
    package func encode(_ message: RealmClientMessage) throws(SluiceError) -> [UInt8] {
        switch message {
        case .bind(let bind): return encode(bind)
        case .ident(let ident): return encode(ident)
        case .query(let session, let query):
            let body = Self.body(query)
            return TokenWriter("query", [session, query.version, UInt64(body.count)], body: body).bytes
        case .upload(let upload): return try encode(upload)
        case .mark(let session, let request): return TokenWriter("mark", [session, request]).bytes
        case .unbind(let session): return TokenWriter("unbind", [session]).bytes
        case .ping(let timestamp, let roundTrip): return TokenWriter("ping", [timestamp, roundTrip]).bytes
        case .report(let report):
            let body = JSON.object([JSON.Member("message", .string(report.message))]).utf8
            return TokenWriter("json_error", [report.code, UInt64(body.count), report.session], body: body).bytes
        case .testCommand(let command): return encode(command)
        }
    }

    private func encode(_ bind: RealmBind) -> [UInt8] {
        var members = [
            JSON.Member("schemaVersion", .int(Int64(clamping: bind.schemaVersion))),
            JSON.Member("sessionReason", .int(Int64(clamping: bind.reason.rawValue))),
        ]
        if let partition = bind.migratedPartition { members.append(JSON.Member("migratedPartition", .string(partition))) }
        let (json, token) = (JSON.object(members).utf8, Array(bind.token.utf8))
        let fields = [
            bind.session, UInt64(json.count), UInt64(token.count), bind.needsFileIdent ? 1 : 0, bind.isSubserver ? 1 : 0,
        ]
        return TokenWriter("bind", fields, body: json + token).bytes
    }

    private func encode(_ ident: RealmIdent) -> [UInt8] {
        let body = Self.body(ident.query)
        let fields = [
            ident.session, ident.file.ident, ident.file.salt, ident.download.serverVersion, ident.download.clientVersion,
            ident.latest.version, ident.latest.salt, ident.query.version, UInt64(body.count),
        ]
        return TokenWriter("ident", fields, body: body).bytes
    }

    private func encode(_ upload: RealmUploadMessage) throws(SluiceError) -> [UInt8] {
        var content = TokenWriter()
        for entry in upload.entries {
            let fields = [entry.clientVersion, entry.serverVersion, entry.timestamp, entry.origin, UInt64(entry.changeset.count)]
            content.entry(fields, entry.changeset)
        }
        let (sizes, body) = try packed(content.bytes)
        let progress = [upload.progress.clientVersion, upload.progress.serverVersion, upload.lockedServerVersion]
        return TokenWriter("upload", [upload.session] + sizes + progress, body: body).bytes
    }

    /// The queries as JSON, by class name.
    private static func body(_ query: RealmQuerySet) -> [UInt8] {
        JSON.object(query.queries.sorted { $0.key < $1.key }.map { JSON.Member($0.key, .string($0.value)) }).utf8
    }
}
