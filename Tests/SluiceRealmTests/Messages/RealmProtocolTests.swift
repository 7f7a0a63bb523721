import SluiceCore
import SluiceRealm
import Testing

@Suite struct `The subprotocol` {
    private static func refusal(_ offered: [String]) -> RealmUpgradeRefusal? {
        do {
            _ = try RealmProtocol.negotiate(offered)
            return nil
        } catch { return error }
    }

    @Test func `is the newest that both sides have`() throws {
        let all = (2...14).reversed().map { "com.mongodb.realm-query-sync#\($0)" }
        #expect(try RealmProtocol.negotiate(all) == RealmSubprotocol(version: 14, name: all[0]))
        #expect(try RealmProtocol.negotiate(Array(all.suffix(3))).version == 4)
        let mixed = ["chat", "com.mongodb.realm-query-sync#15", "com.mongodb.realm-query-sync#2", "com.mongodb.realm-sync#14"]
        #expect(try RealmProtocol.negotiate(mixed).name == "com.mongodb.realm-query-sync#2")
    }

    @Test func `may have the form of older clients`() throws {
        let older = ["com.mongodb.realm-query-sync/7", "com.mongodb.realm-query-sync/6"]
        #expect(try RealmProtocol.negotiate(older) == RealmSubprotocol(version: 7, name: older[0]))
        #expect(Self.refusal(["com.mongodb.realm-query-sync/4"])?.status == 400)
        #expect(Self.refusal(["com.mongodb.realm-sync/7"])?.error.message.contains("partition-based") == true)
    }

    @Test(arguments: [("#14", true), ("#8", true), ("#7", false), ("#2", false), ("/7", false), ("/8", false), ("/14", false)])
    func `decides if a client knows the close codes`(suffix: String, isKnown: Bool) throws {
        #expect(try RealmProtocol.negotiate(["com.mongodb.realm-query-sync\(suffix)"]).knowsCloseCodes == isKnown)
    }

    @Test(arguments: ["#1", "#15", "#", "#+3", "#03", "#3 ", "#14#14", "#99999999999999999999", ""])
    func `is refused with a status, not accepted, if it is another one`(suffix: String) {
        let refusal = Self.refusal(["com.mongodb.realm-query-sync\(suffix)"])
        #expect(refusal?.status == 400)
        #expect(refusal?.error.code == .wrongProtocolVersion)
    }

    @Test func `of partition-based sync is refused by name`() throws {
        let refusal = try #require(Self.refusal(["com.mongodb.realm-sync#14", "com.mongodb.realm-sync#13"]))
        #expect(refusal.status == 400)
        #expect(refusal.error.message.contains("partition-based"))
        #expect(Self.refusal([])?.error.message.contains("partition-based") == false)
    }

    @Test func `is refused with the status that makes the client do the right thing`() {
        let statuses: [(ErrorCode, Int)] = [
            (.tokenExpired, 401), (.badAuthentication, 401), (.userDisabled, 403), (.tooManyConnections, 503), (.internalError, 503),
        ]
        for (code, status) in statuses { #expect(RealmUpgradeRefusal(SluiceError(code, "")).status == status, "\(code)") }
    }

    @Test func `closes with no code after which a client stays closed`() {
        #expect(RealmCloseCode.allCases.map(\.rawValue) == [1009, 1011, 4001, 4002, 4003])
    }
}
