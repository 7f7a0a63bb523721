import SluiceCore
import SluicePorts
import SluiceRealm
import TestSupport
import Testing

@Suite struct `A message of Realm's protocol` {
    private static let codec = RealmCodec(compression: RunLengthCompression())

    private static func bytes(_ header: String, _ body: [UInt8] = []) -> [UInt8] { Array("\(header)\n".utf8) + body }
    private static func bytes(_ header: String, _ body: String) -> [UInt8] { bytes(header, Array(body.utf8)) }

    private static func code(_ message: [UInt8], limits: RealmMessageLimits = RealmMessageLimits()) -> ErrorCode? {
        do {
            _ = try RealmCodec(compression: RunLengthCompression(), limits: limits).decodeClient(message)
            return nil
        } catch { return error.code }
    }

    // MARK: An exchange with a real client

    @Test(arguments: [
        ("upload 1 1 5000000 2 12 3 3", 5_000_000), ("upload 1 1 9000000000000000000 2 12 3 3", 9_000_000_000_000_000_000),
        ("upload 1 1 1 2 12 3 3", 22), ("upload 1 0 5000000 0 12 3 3", 28), ("upload 1 1 x", 13), ("upload", 7), ("ping 5 6", 9),
    ])
    func `tells the work of a message before it is decoded`(header: String, bytes: Int) {
        #expect(Self.codec.workBytes(ofClient: Self.bytes(header)) == bytes)
    }

    @Test func `of a client that opens a session is read and written as seen on the wire`() throws {
        let seen: [([UInt8], RealmClientMessage)] = [
            (Self.bytes("bind 1 37 0 1 0", #"{"schemaVersion":0,"sessionReason":0}"#), .bind(RealmBind(session: 1, needsFileIdent: true))),
            (
                Self.bytes("ident 1 2 4244 0 0 0 0 0 2", "{}"),
                .ident(
                    RealmIdent(
                        session: 1, file: RealmFileIdent(ident: 2, salt: 4_244), download: RealmDownloadCursor(),
                        latest: RealmServerVersion(), query: RealmQuerySet(version: 0, queries: [:])))
            ),
            (
                Self.bytes("ident 1 2 4244 8 34 8 77 2 52", #"{"Person":"(TRUEPREDICATE)","Task":"(priority > 5)"}"#),
                .ident(
                    RealmIdent(
                        session: 1, file: RealmFileIdent(ident: 2, salt: 4_244),
                        download: RealmDownloadCursor(serverVersion: 8, clientVersion: 34),
                        latest: RealmServerVersion(version: 8, salt: 77),
                        query: RealmQuerySet(version: 2, queries: ["Person": "(TRUEPREDICATE)", "Task": "(priority > 5)"])))
            ),
            (
                Self.bytes("query 1 1 25", #"{"Task":"(priority > 5)"}"#),
                .query(session: 1, RealmQuerySet(version: 1, queries: ["Task": "(priority > 5)"]))
            ),
            (Self.bytes("mark 1 1"), .mark(session: 1, request: 1)),
            (Self.bytes("unbind 1"), .unbind(session: 1)),
            (Self.bytes("ping 3561127 0"), .ping(timestamp: 3_561_127, roundTrip: 0)),
        ]
        for (bytes, message) in seen {
            #expect(try Self.codec.decodeClient(bytes) == message)
            #expect(try Self.codec.encode(message) == bytes)
        }
    }

    @Test func `of a client that uploads is read and written as seen on the wire`() throws {
        let changeset: [UInt8] = [
            0x3f, 0x00, 0x04, 0x54, 0x61, 0x73, 0x6b, 0x03, 0x00, 0x0a, 0x65, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0xbc,
        ]
        let entry = Array("27 5 375569288673 0 22 ".utf8) + changeset
        let bytes = Self.bytes("upload 1 0 45 0 27 5 5", entry)
        let upload = RealmUploadMessage(
            session: 1, progress: RealmUploadProgress(clientVersion: 27, serverVersion: 5), lockedServerVersion: 5,
            entries: [
                RealmUploadEntry(clientVersion: 27, serverVersion: 5, timestamp: 375_569_288_673, origin: 0, changeset: changeset)
            ])
        #expect(entry.count == 45)
        #expect(try Self.codec.decodeClient(bytes) == .upload(upload))
        #expect(try Self.codec.encode(.upload(upload)) == bytes)
        let empty = RealmUploadMessage(
            session: 1, progress: RealmUploadProgress(clientVersion: 12, serverVersion: 3), lockedServerVersion: 3)
        #expect(try Self.codec.decodeClient(Self.bytes("upload 1 0 0 0 12 3 3")) == .upload(empty))
    }

    @Test func `of a server is written and read as seen on the wire`() throws {
        let progress = RealmProgress(
            download: RealmDownloadCursor(serverVersion: 3, clientVersion: 6), latest: RealmServerVersion(version: 3, salt: 77),
            upload: RealmUploadProgress(clientVersion: 6, serverVersion: 0))
        let seen: [([UInt8], RealmServerMessage)] = [
            (Self.bytes("ident 1 2 4244"), .ident(session: 1, RealmFileIdent(ident: 2, salt: 4_244))),
            (
                Self.bytes("download 1 3 6 3 77 6 0 0 2 1 0 0 0"),
                .download(RealmDownload(session: 1, progress: progress, queryVersion: 0, batch: .steadyState))
            ),
            (Self.bytes("mark 1 1"), .mark(session: 1, request: 1)),
            (Self.bytes("pong 3561127"), .pong(timestamp: 3_561_127)),
            (Self.bytes("unbound 1"), .unbound(session: 1)),
            (
                Self.bytes("query_error 226 21 1 3", "Invalid query: no key"),
                .queryError(RealmQueryError(session: 1, queryVersion: 3, message: "Invalid query: no key"))
            ),
        ]
        for (bytes, message) in seen {
            #expect(try Self.codec.encode(message) == bytes)
            #expect(try Self.codec.decodeServer(bytes) == message)
        }
    }

    @Test func `of the first bootstrap has one entry without content`() throws {
        let progress = RealmProgress(
            download: RealmDownloadCursor(serverVersion: 2), latest: RealmServerVersion(version: 2, salt: 77))
        let entry = RealmDownloadEntry(serverVersion: 2, clientVersion: 0, timestamp: 375_569_288_546, origin: 1, changeset: [])
        let download = RealmDownload(session: 1, progress: progress, queryVersion: 0, batch: .lastInBatch, entries: [entry])
        let bytes = Self.bytes("download 1 2 0 2 77 0 0 0 1 1 0 25 0", "2 0 375569288546 1 0 0 ")
        #expect(try Self.codec.encode(.download(download)) == Self.bytes("download 1 2 0 2 77 0 0 0 1 1 0 23 0", "2 0 375569288546 1 0 0 "))
        // The size of the header is wrong.
        #expect(throws: SluiceError.self) { try Self.codec.decodeServer(bytes) }
    }

    @Test func `of a compensating write names the key in base64`() throws {
        let key: [UInt8] = [0x0a, 0x65, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x0b, 0xad]
        let error = RealmServerError(
            session: 1,
            RealmCompensation(
                serverVersion: 7, clientVersion: 30, rejected: [RealmRejectedUpdate(reason: "outside", table: "Task", key: key)]))
        let text = String(decoding: try Self.codec.encode(.error(error)), as: UTF8.self)
        #expect(text.hasPrefix("json_error 231 "))
        #expect(text.contains(#""pk":"CmW7AAAAAAAAAAALrQ==""#))
        #expect(text.contains(#""compensatingWriteServerVersion":7,"rejectedClientVersion":30"#))
        for key in ["message", "tryAgain", "logURL", "shouldClientReset", "isRecoveryModeDisabled", "action"] {
            #expect(text.contains("\"\(key)\":"), "\(key)")
        }
        #expect(try Self.codec.decodeServer(try Self.codec.encode(.error(error))) == .error(error))
    }

    // MARK: Properties

    @Test(arguments: seeds(20)) func `comes back from its bytes as it was`(seed: UInt64) throws {
        var samples = MessageSamples(seed: seed)
        for _ in 0..<200 {
            let client = samples.clientMessage()
            #expect(try Self.codec.decodeClient(try Self.codec.encode(client)) == client, "seed \(seed)")
            let server = samples.serverMessage()
            #expect(try Self.codec.decodeServer(try Self.codec.encode(server)) == server, "seed \(seed)")
        }
    }

    /// The test passes if nothing traps, and if everything that decodes has a form that decodes to the same.
    @Test(arguments: seeds(20)) func `that is damaged is read or refused`(seed: UInt64) throws {
        var samples = MessageSamples(seed: seed)
        for _ in 0..<300 {
            let isClient = samples.random.chance(50)
            var bytes = isClient ? try Self.codec.encode(samples.clientMessage()) : try Self.codec.encode(samples.serverMessage())
            for _ in 0...samples.random.below(4) { Self.damage(&bytes, &samples.random) }
            if isClient {
                guard let message = try? Self.codec.decodeClient(bytes) else { continue }
                #expect(try Self.codec.decodeClient(try Self.codec.encode(message)) == message, "seed \(seed)")
            } else {
                _ = try? Self.codec.decodeServer(bytes)
            }
        }
    }

    private static func damage(_ bytes: inout [UInt8], _ random: inout SplitMix64) {
        guard !bytes.isEmpty else { return }
        let place = random.chance(60) ? random.below(min(bytes.count, 40)) : random.below(bytes.count)
        switch random.below(6) {
        case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes[place] = random.pick(Array("0129 \n-x".utf8))
        case 2: bytes.insert(random.pick(Array("09 \n".utf8)), at: place)
        case 3: bytes.remove(at: place)
        case 4: bytes.removeSubrange(place...)
        default: bytes += bytes[..<place]
        }
    }

    // MARK: Refusals

    @Test func `is refused by name if its header or its body does not fit`() {
        let cases: [(String, [UInt8], ErrorCode)] = [
            ("empty", [], .badSyntax), ("no line end", Array("mark 1 1".utf8), .badSyntax),
            ("unknown", Self.bytes("greet 1"), .unknownMessage),
            ("a server's", Self.bytes("unbound 1"), .unknownMessage), ("two spaces", Self.bytes("mark  1 1"), .badSyntax),
            ("too few fields", Self.bytes("mark 1"), .badSyntax), ("too many fields", Self.bytes("mark 1 1 1"), .badSyntax),
            ("a sign", Self.bytes("mark -1 1"), .badSyntax), ("64 bits", Self.bytes("mark 1 9223372036854775808"), .badSyntax),
            ("20 digits", Self.bytes("mark 1 00000000000000000001"), .badSyntax), ("bytes behind", Self.bytes("mark 1 1", "x"), .badSyntax),
            ("a flag of 2", Self.bytes("bind 1 2 0 2 0", "{}"), .badSyntax),
            ("a short body", Self.bytes("bind 1 9 0 1 0", "{}"), .badSyntax),
            ("no JSON", Self.bytes("query 1 1 1", "{"), .badJSON), ("no object", Self.bytes("query 1 1 2", "[]"), .badSyntax),
            ("a query of 1", Self.bytes("query 1 1 7", #"{"A":1}"#), .badSyntax),
            ("a class twice", Self.bytes("query 1 1 15", #"{"A":"","A":""}"#), .badJSON),
            ("a reason", Self.bytes("bind 1 19 0 1 0", #"{"sessionReason":2}"#), .badSyntax),
            ("a large changeset", Self.bytes("upload 1 0 10 0 1 0 0", "1 0 0 0 2 "), .badChangeset),
            ("half an entry", Self.bytes("upload 1 0 5 0 1 0 0", "1 0 0"), .badSyntax),
            ("a line end in an entry", Self.bytes("upload 1 0 10 0 1 0 0", "1 0 0 0\n0 "), .badSyntax),
            ("half a pair", Self.bytes("upload 1 1 10 1 1 0 0", "1"), .badCompression),
        ]
        for (name, bytes, code) in cases { #expect(Self.code(bytes) == code, "\(name)") }
    }

    @Test func `is refused beyond its bounds before memory is used`() {
        let limits = RealmMessageLimits(messageBytes: 64, bodyBytes: 100)
        #expect(Self.code([UInt8](repeating: 0x20, count: 65), limits: limits) == .limitsExceeded)
        #expect(Self.code(Self.bytes("upload 1 1 101 2 1 0 0", "zz"), limits: limits) == .limitsExceeded)
        #expect(Self.code(Self.bytes("upload 1 1 9000000000000000000 2 1 0 0", "zz"), limits: limits) == .limitsExceeded)
        #expect(Self.code(Self.bytes("query 1 1 65", "{}"), limits: limits) == .limitsExceeded)
    }

    @Test func `is compressed only if that makes it smaller`() throws {
        var upload = RealmUploadMessage(session: 1, progress: RealmUploadProgress())
        upload.entries = [
            RealmUploadEntry(
                clientVersion: 1, serverVersion: 0, timestamp: 0, origin: 0, changeset: [UInt8](repeating: 3, count: 2_000))
        ]
        #expect(try Self.codec.encode(.upload(upload)).starts(with: "upload 1 1 2013 ".utf8))
        upload.entries[0].changeset = (0..<2_000).map { UInt8(truncatingIfNeeded: $0) }
        #expect(try Self.codec.encode(.upload(upload)).starts(with: "upload 1 0 2013 0 ".utf8))
        upload.entries[0].changeset = [UInt8](repeating: 3, count: 900)
        #expect(try Self.codec.encode(.upload(upload)).starts(with: "upload 1 0 912 0 ".utf8))
    }

    @Test func `of an error never carries a code that ends the client's process`() throws {
        let deadly: Set<UInt64> = [104, 202, 203, 205, 207, 214, 215, 218, 219, 220, 221, 224]
        #expect(RealmErrorCode.allCases.allSatisfy { !deadly.contains($0.rawValue) })
        let crossed = RealmServerError(session: 0, code: .badClientFileIdent, message: "", action: .clientReset, tryAgain: false)
        #expect(throws: SluiceError.self) { try Self.codec.encode(.error(crossed)) }
        let other = RealmServerError(session: 1, code: .badSyntax, message: "", action: .transient, tryAgain: true)
        #expect(throws: SluiceError.self) { try Self.codec.encode(.error(other)) }
    }

    private static let shares: [(Double, String)] = [
        (0, "0"), (1, "1"), (0.5, "0.5000"), (0.00001, "0"), (0.0625, "0.0625"), (0.819, "0.8190"), (0.99999, "0.9999"), (2, "1"),
        (-1, "0"), (.nan, "0"),
    ]

    @Test(arguments: shares)
    func `of a bootstrap has a share without an exponent`(share: Double, text: String) throws {
        let download = RealmDownload(session: 1, progress: RealmProgress(), queryVersion: 1, batch: .moreToCome, estimate: share)
        let bytes = try Self.codec.encode(.download(download))
        #expect(bytes == Self.bytes("download 1 0 0 0 0 0 0 1 0 \(text) 0 0 0"))
    }
}
