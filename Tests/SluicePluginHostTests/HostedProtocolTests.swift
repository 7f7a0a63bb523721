import SluiceCore
import SluicePluginHost
import TestSupport
import Testing

@Suite struct `The host's protocol` {
    private func random(_ generator: inout SplitMix64) -> HostedMessage {
        let bytes = (0..<Int.random(in: 0...300, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
        switch Int.random(in: 0..<7, using: &generator) {
        case 0:
            return .call(
                id: generator.next(), hook: Hook.allCases.randomElement(using: &generator)!, deadline: generator.next(),
                processor: generator.next(), input: bytes)
        case 1: return .answer(id: generator.next(), HookAnswer(status: .denied, bytes: bytes))
        case 2: return .ask(.customData(user: "user \(generator.next()) ü"))
        case 3: return .ask(.parse(type: "Type \(generator.next())", predicate: "predicate \(generator.next())"))
        case 4: return .told(HookAnswer(status: .failed, bytes: bytes))
        case 5: return .count(name: "name", amount: generator.next())
        default: return .log(level: 2, text: "text \(generator.next()) ü")
        }
    }

    @Test(arguments: [UInt64.random(in: 0 ... .max), 1, 2, 3])
    func `messages come out as they went in, however the bytes are cut`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let messages = (0..<200).map { _ in random(&generator) }
        var bytes: [UInt8] = []
        for message in messages { HostedProtocol.encode(message, into: &bytes) }
        var decoder = HostedDecoder()
        var read: [HostedMessage] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...97, using: &generator))
            rest = rest.dropFirst(piece.count)
            decoder.feed(piece)
            while let message = try decoder.next() { read.append(message) }
        }
        #expect(read == messages, "seed \(seed)")
    }

    @Test func `a length over the limit is an error, not an allocation`() {
        var decoder = HostedDecoder()
        decoder.feed([0xFF, 0xFF, 0xFF, 0x7F])
        #expect(throws: SluiceError.self) { try decoder.next() }
    }

    @Test(arguments: [[1, 0, 0, 0, 9], [2, 0, 0, 0, 1, 0], [0, 0, 0, 0], [10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 99]] as [[UInt8]])
    func `malformed messages are errors`(bytes: [UInt8]) {
        var decoder = HostedDecoder()
        decoder.feed(bytes)
        let error = #expect(throws: SluiceError.self) { try decoder.next() }
        #expect(error?.code == .pluginBadAnswer)
    }
}
