import SluiceCore
import SluiceGateway
import SluicePorts
import SluiceValues
import SluiceWire
import TestSupport
import Testing

/// The two forms of an event of a user, as a reader of the topic decodes them.
@Suite struct `A record of a user's event` {
    private static let event = UserEvent(
        id: 17, kind: .loggedIn,
        account: UserAccount(
            id: "65cc", provider: "local-userpass", identities: [["id": "ada@example.com", "provider_type": "local-userpass"]],
            data: ["email": "ada@example.com"], customData: ["since": ["$date": "2026-11-29T10:00:00Z"], "rank": 3, "share": 0.5]),
        provider: "local-userpass", milliseconds: 1_700_000_000_123)

    @Test func `as Protobuf has numbers that never change`() throws {
        let message: PBUserEvent = try WireProtocol.decode(from: try Self.event.record(.protobuf))
        #expect(message.id == 17 && message.kind == .loggedIn && message.provider == "local-userpass")
        #expect(message.at.seconds == 1_700_000_000 && message.at.nanoseconds == 123_000_000)
        #expect(message.user.id == "65cc" && message.user.type == "normal")
        #expect(message.user.identities.map(\.id) == ["ada@example.com"])
        #expect(try Value(message.user.data) == .dictionary(["email": .string("ada@example.com")]))
        // Written by hand: a number or a type that changes breaks every reader.
        let small = UserEvent(
            id: 1, kind: .deleted, account: UserAccount(id: "u", provider: "p", identities: [["id": "i", "provider_type": "p"]]),
            provider: "p", milliseconds: 1_000)
        let user: [UInt8] =
            [0x0A, 1, 0x75, 0x12, 6] + Array("normal".utf8) + [0x1A, 2, 0x6A, 0, 0x22, 2, 0x6A, 0]
            + [0x2A, 6, 0x0A, 1, 0x69, 0x12, 1, 0x70]
        let bytes = [0x08, 1, 0x10, 5, 0x1A, 2, 0x08, 2, 0x22, 1, 0x70, 0x2A, UInt8(user.count)] + user
        #expect(try small.record(.protobuf) == bytes)
    }

    @Test(arguments: seeds(4)) func `carries the same in both forms, whatever the account has`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for number in 0..<100 {
            let event = Self.random(Int64(number) + 1, &random)
            let json = try JSON.parse(try event.record(.json))
            let message: PBUserEvent = try WireProtocol.decode(from: try event.record(.protobuf))
            #expect(try Self.json(message) == Self.sorted(json), "event \(number)")
        }
    }

    /// The JSON form of a message, as a reader would write it.
    private static func json(_ message: PBUserEvent) throws -> JSON {
        let kinds: [PBUserEvent.Kind: String] = [
            .registered: "registered",
            .created: "created", .loggedIn: "logged in", .disabled: "disabled", .enabled: "enabled", .deleted: "deleted",
        ]
        var time = PBValue()
        time.timestamp = message.at
        let user: JSON = [
            "id": .string(message.user.id), "type": .string(message.user.type),
            "data": ExtendedJSON.json(try Value(message.user.data)), "custom_data": ExtendedJSON.json(try Value(message.user.customData)),
            "identities": .array(
                message.user.identities.map { ["id": .string($0.id), "provider_type": .string($0.providerType)] }),
        ]
        return sorted([
            "id": .int(message.id), "kind": .string(try #require(kinds[message.kind])), "at": ExtendedJSON.json(try Value(time)),
            "provider": .string(message.provider), "user": user,
        ])
    }

    private static func random(_ id: Int64, _ random: inout SplitMix64) -> UserEvent {
        let providers = ["local-userpass", "anon-user", "api-key", "custom-token"]
        let identities = (0..<random.below(3)).map { _ -> JSON in
            ["id": .string(.random(using: &random)), "provider_type": .string(random.pick(providers))]
        }
        return UserEvent(
            id: id, kind: random.pick(UserEvent.Kind.allCases),
            account: UserAccount(
                id: .random(using: &random), provider: providers[0], identities: .array(identities), data: json(&random, depth: 3),
                customData: json(&random, depth: 3)),
            provider: random.pick(providers), milliseconds: Int64(random.below(4_000_000_000_000)))
    }

    private static func json(_ random: inout SplitMix64, depth: Int) -> JSON {
        switch random.below(depth > 0 ? 8 : 5) {
        case 0: .null
        case 1: .bool(random.chance(50))
        case 2: .int(Int64(bitPattern: random.next()))
        case 3: .double(Double(random.below(1 << 40)) / 1_024)
        case 4: .string(.random(using: &random))
        case 5: .array((0..<random.below(4)).map { _ in json(&random, depth: depth - 1) })
        case 6: .object([JSON.Member(random.pick(["$date", "$oid", "$numberLong"]), json(&random, depth: depth - 1))])
        default:
            .object((0..<random.below(4)).map { JSON.Member("\($0)\(String.random(using: &random))", json(&random, depth: depth - 1)) })
        }
    }

    /// The members of every object in the order of their keys.
    private static func sorted(_ json: JSON) -> JSON {
        switch json {
        case .array(let elements): .array(elements.map(sorted))
        case .object(let members):
            .object(
                members.map { JSON.Member($0.key, sorted($0.value)) }.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) })
        default: json
        }
    }
}
