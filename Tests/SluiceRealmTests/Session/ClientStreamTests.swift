import SluiceCore
import SluicePorts
import SluiceRealm
import TestSupport
import Testing

@Suite struct `The stream of a client` {
    private static let file = RealmFileIdent(ident: 7, salt: 1)

    private static func entry(_ server: UInt64, client: UInt64 = 0, bytes: Int = 10, at time: Int64 = 0) -> RealmStreamEntry {
        RealmStreamEntry(
            serverVersion: server, clientVersion: client, timestamp: 0, origin: 1, changeset: [UInt8](repeating: 1, count: bytes),
            created: time)
    }

    private static func stream(_ bounds: ClientStreamBounds = ClientStreamBounds()) -> ClientStream {
        ClientStream(StoredRealmClient(record: RealmClientRecord(file: file)), bounds: bounds)
    }

    /// A stream with the view of query version 1 at version 5, uploads up to 20, and the entries 7, 8 and 10.
    private static func returning() throws -> ClientStream {
        var stream = stream()
        stream.beginBootstrap(queryVersion: 1)
        stream.completeBootstrap(queryVersion: 1, serverVersion: 5)
        stream.integrated(RealmUploadProgress(clientVersion: 20, serverVersion: 6))
        for version: UInt64 in [7, 8, 10] { _ = try stream.append(entry(version, client: 20), now: 0) }
        return stream
    }

    private static func ident(_ server: UInt64, client: UInt64 = 20, query: UInt64 = 1) -> RealmIdent {
        RealmIdent(
            session: 1, file: file, download: RealmDownloadCursor(serverVersion: server, clientVersion: client),
            latest: RealmServerVersion(version: server, salt: 77), query: RealmQuerySet(version: query, queries: [:]))
    }

    private static func resumption(_ stream: ClientStream, _ ident: RealmIdent, newest: UInt64 = 12, now: Int64 = 0) -> String {
        var stream = stream
        switch stream.resume(ident, newest: newest, now: now) {
        case .resend: return "resend \(stream.entries.map(\.serverVersion))"
        case .bootstrap: return "bootstrap"
        case .reset(let code, _): return "reset \(code.rawValue)"
        }
    }

    @Test func `chooses how a returning client continues`() throws {
        let stream = try Self.returning()
        #expect(Self.resumption(stream, Self.ident(6)) == "resend [7, 8, 10]")
        #expect(Self.resumption(stream, Self.ident(8)) == "resend [10]")
        #expect(Self.resumption(stream, Self.ident(11)) == "resend []")
        #expect(Self.resumption(stream, Self.ident(8, query: 2)) == "bootstrap")
        #expect(Self.resumption(stream, Self.ident(8, query: 0)) == "bootstrap")
        #expect(Self.resumption(stream, Self.ident(13)) == "reset 209")
        #expect(Self.resumption(stream, Self.ident(8, client: 21)) == "reset 210")
        // It has confirmed version 6.
        #expect(Self.resumption(stream, Self.ident(5)) == "reset 208")
        #expect(Self.resumption(Self.stream(), Self.ident(0, client: 0, query: 0)) == "bootstrap")
    }

    @Test func `bootstraps a client that misses the last bootstrap`() throws {
        var stream = try Self.returning()
        stream.beginBootstrap(queryVersion: 2)
        // The view was being changed, so the old one is no longer kept up.
        #expect(Self.resumption(stream, Self.ident(8)) == "bootstrap")
        stream.completeBootstrap(queryVersion: 2, serverVersion: 9)
        #expect(stream.entries.map(\.serverVersion) == [10])
        #expect(Self.resumption(stream, Self.ident(8, query: 2)) == "bootstrap")
        #expect(Self.resumption(stream, Self.ident(9, query: 2)) == "resend [10]")
        var cancelled = try Self.returning()
        cancelled.beginBootstrap(queryVersion: 2)
        cancelled.cancelBootstrap()
        #expect(Self.resumption(cancelled, Self.ident(8)) == "resend [10]")
    }

    @Test func `keeps an entry as it was made until the client has it`() throws {
        var stream = try Self.returning()
        let before = stream.entries
        stream.integrated(RealmUploadProgress(clientVersion: 30, serverVersion: 7))
        #expect(stream.entries == Array(before.dropFirst()))
        #expect(stream.entries.allSatisfy { $0.clientVersion == 20 })
        #expect(stream.isDuplicate(30) && !stream.isDuplicate(31))
        // Older progress changes nothing.
        stream.integrated(RealmUploadProgress(clientVersion: 25, serverVersion: 3))
        #expect(stream.record.upload == RealmUploadProgress(clientVersion: 30, serverVersion: 7))
        #expect(stream.record.acknowledged == 7)
    }

    @Test func `takes no entry out of order`() throws {
        var stream = try Self.returning()
        for version: UInt64 in [0, 5, 9, 10] {
            #expect(throws: SluiceError.self) { _ = try stream.append(Self.entry(version, client: 20), now: 0) }
        }
        #expect(throws: SluiceError.self) { _ = try stream.append(Self.entry(11, client: 19), now: 0) }
        let isKept = try stream.append(Self.entry(11, client: 20), now: 0)
        #expect(isKept && stream.entries.count == 4)
    }

    @Test func `is lost beyond each of its bounds, and the client is reset`() throws {
        let cases: [(String, ClientStreamBounds)] = [
            ("entries", ClientStreamBounds(entries: 2)), ("bytes", ClientStreamBounds(bytes: 200)), ("age", ClientStreamBounds(age: 50)),
        ]
        for (name, bounds) in cases {
            var stream = Self.stream(bounds)
            #expect(try stream.append(Self.entry(1, at: 100), now: 100), "\(name)")
            #expect(try stream.append(Self.entry(2, at: 150), now: 150), "\(name)")
            #expect(try !stream.append(Self.entry(3, at: 151), now: 151), "\(name)")
            #expect(stream.record.isLost && stream.entries.isEmpty && stream.bytes == 0, "\(name)")
            #expect(try !stream.append(Self.entry(4), now: 0), "\(name)")
            #expect(Self.resumption(stream, Self.ident(1, client: 0)) == "reset 208", "\(name)")
        }
        var old = Self.stream(ClientStreamBounds(age: 50))
        _ = try old.append(Self.entry(1, at: 100), now: 100)
        #expect(Self.resumption(old, Self.ident(1, client: 0), now: 151) == "reset 208")
        // A clock that went back loses nothing.
        #expect(Self.resumption(old, Self.ident(1, client: 0), now: .min) == "bootstrap")
    }

    @Test func `reports a compensating write although a bootstrap covers its entry`() throws {
        var stream = try Self.returning()
        var undone = Self.entry(11, client: 20)
        undone.compensation = RealmCompensation(serverVersion: 11, clientVersion: 20, rejected: [])
        _ = try stream.append(undone, now: 0)
        stream.beginBootstrap(queryVersion: 2)
        stream.completeBootstrap(queryVersion: 2, serverVersion: 12)
        #expect(stream.entries.isEmpty && stream.record.compensations.map(\.serverVersion) == [11])
        stream.acknowledge(upTo: 12)
        #expect(stream.record.compensations.isEmpty)
    }

    @Test(arguments: seeds(20)) func `holds exactly the entries that are not confirmed`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var stream = Self.stream()
        var expected: [UInt64] = []
        var version: UInt64 = 0
        for step in 0..<300 {
            switch random.below(6) {
            case 0:
                let confirmed = UInt64(random.below(Int(version) + 1))
                stream.integrated(RealmUploadProgress(clientVersion: UInt64(step), serverVersion: confirmed))
                expected.removeAll { $0 <= confirmed }
            case 1:
                version += 1
                stream.beginBootstrap(queryVersion: UInt64(step))
                stream.completeBootstrap(queryVersion: UInt64(step), serverVersion: version)
                expected = []
            default:
                version += UInt64(1 + random.below(3))
                _ = try stream.append(
                    Self.entry(version, client: stream.record.upload.clientVersion, bytes: random.below(50)), now: 0)
                expected.append(version)
            }
            #expect(stream.entries.map(\.serverVersion) == expected, "seed \(seed), step \(step)")
            #expect(stream.bytes == stream.entries.reduce(0) { $0 + $1.cost }, "seed \(seed), step \(step)")
            let restored = ClientStream(StoredRealmClient(record: stream.record, entries: stream.entries))
            #expect(restored == stream, "seed \(seed), step \(step)")
        }
    }
}
