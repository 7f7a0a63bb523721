import SluiceCore
import SluiceWire
import SwiftProtobuf
import TestSupport
import Testing

@Suite struct `A session's first message` {
    private static func hello(_ token: String, version: UInt32, classes: Int = 0, properties: Int = 0) -> PBHello {
        .with { hello in
            (hello.protocol, hello.accessToken) = (version, token)
            hello.schema = (0..<classes).map { number in
                .with {
                    $0.name = "Class\(number)"
                    $0.properties = (0..<properties).map { property in .with { $0.name = "p\(property)" } }
                }
            }
        }
    }

    private static func bytes(_ kind: PBClientMessage.OneOf_Kind) throws -> [UInt8] { try WireProtocol.encode(PBClientMessage(kind)) }

    private static func field(_ number: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        var rest = content.count
        repeat {
            length.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        return [number << 3 | 2] + length + content
    }

    @Test(arguments: ["", "a.b.c", String(repeating: "é", count: 5_000)]) func `tells token and version undecoded`(token: String) throws {
        let hello = try OpeningMessage(try Self.bytes(.hello(Self.hello(token, version: 3, classes: 2, properties: 2))))
        #expect(hello.kind == .hello && hello.token == token && hello.version == 3)
        let refresh = try OpeningMessage(try Self.bytes(.refreshToken(.with { $0.accessToken = token })))
        #expect(refresh.kind == .refreshToken && refresh.token == token && refresh.version == 0)
        let mark = try OpeningMessage(try Self.bytes(.mark(.with { $0.id = 4 })))
        #expect(mark.kind == .other(5) && mark.token.isEmpty && mark.version == 0)
    }

    /// A decoder takes the last of two tokens, so the one that is verified could be another.
    @Test func `with two tokens is refused`() throws {
        let one = try Self.hello("good", version: 1).serializedBytes() as [UInt8]
        let twice = Self.field(1, one + Self.field(2, Array("bad".utf8)))
        #expect(throws: SluiceError.self) { try OpeningMessage(twice) }
        let refresh = Self.field(6, Self.field(1, [0x61]) + Self.field(1, [0x62]))
        let error = #expect(throws: SluiceError.self) { try OpeningMessage(refresh) }
        #expect(error?.code == .badSyntax && error?.message.contains("token is given twice") == true)
    }

    @Test func `that is none, or two, is refused`() throws {
        let none = #expect(throws: SluiceError.self) { try OpeningMessage([]) }
        #expect(none?.code == .unknownMessage)
        let two = try Self.bytes(.hello(Self.hello("a", version: 1))) + Self.bytes(.refreshToken(.with { $0.accessToken = "b" }))
        #expect((#expect(throws: SluiceError.self) { try OpeningMessage(two) })?.code == .badSyntax)
        // A number in the place of a message.
        #expect((#expect(throws: SluiceError.self) { try OpeningMessage([0x08, 0x01]) })?.code == .badSyntax)
    }

    @Test func `may list so many classes and properties, counted before it is decoded`() throws {
        let fitting = try Self.bytes(.hello(Self.hello("t", version: 1, classes: 2, properties: Limits.helloProperties / 2)))
        try OpeningMessage(fitting).checkCounts(of: fitting)
        let large = try Self.bytes(.hello(Self.hello("t", version: 1, classes: 2, properties: Limits.helloProperties / 2 + 1)))
        let error = #expect(throws: SluiceError.self) { try OpeningMessage(large).checkCounts(of: large) }
        #expect(error?.code == .limitsExceeded && error?.message.contains("\(Limits.helloProperties + 2) properties") == true)
        // Classes count in the schema, in the client view record and in the resume offer.
        let classes = Self.field(1, (0...(3 * Limits.helloClasses)).flatMap { _ in Self.field(6, []) })
        #expect((#expect(throws: SluiceError.self) { try OpeningMessage(classes).checkCounts(of: classes) })?.code == .limitsExceeded)
        let held = Self.field(1, Self.field(9, (0...(3 * Limits.helloClasses)).flatMap { _ in Self.field(3, []) }))
        #expect((#expect(throws: SluiceError.self) { try OpeningMessage(held).checkCounts(of: held) })?.code == .limitsExceeded)
        let offered = Self.field(1, Self.field(12, (0...(3 * Limits.helloClasses)).flatMap { _ in Self.field(2, []) }))
        #expect((#expect(throws: SluiceError.self) { try OpeningMessage(offered).checkCounts(of: offered) })?.code == .limitsExceeded)
        // Other messages have none.
        let refresh = try Self.bytes(.refreshToken(.with { $0.accessToken = "t" }))
        try OpeningMessage(refresh).checkCounts(of: refresh)
    }

    /// What it reads is what the decoder reads, whatever is cut or changed on the way.
    @Test(arguments: seeds(10)) func `damaged is refused, or has the token that the decoder finds`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var read = 0
        for _ in 0..<300 {
            var bytes = try Self.bytes(.hello(Self.hello("tok.en", version: UInt32(random.below(300)), classes: 2, properties: 2)))
            switch random.below(3) {
            case 0: bytes.removeLast(random.below(bytes.count))
            case 1: bytes[random.below(bytes.count)] = UInt8(random.below(256))
            default: bytes.insert(UInt8(random.below(256)), at: random.below(bytes.count))
            }
            guard let opening = try? OpeningMessage(bytes), opening.kind == .hello else { continue }
            try? opening.checkCounts(of: bytes)
            guard let decoded = try? PBClientMessage(serializedBytes: bytes) else { continue }
            #expect(decoded.hello.accessToken == opening.token && UInt64(decoded.hello.protocol) == opening.version, "seed \(seed)")
            read += 1
        }
        #expect(read > 0, "seed \(seed)")
    }
}
