import Foundation
import GatewayTestSupport
import Logging
import NIOCore
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluicePorts
import SluiceValues
import TestSupport
import Testing

/// A broker behind a proxy that ends TLS, and calls itself the broker.
@Suite(.timeLimit(.minutes(5))) struct `Kafka over TLS` {
    private static func with(asksClients: Bool = false, _ body: (TLSProxy) async throws -> Void) async throws {
        let address = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        let port = try #require(address.split(separator: ":").last.flatMap { Int($0) })
        try await TLSProxy.with(
            port, asksClients: asksClients, requests: { PlainLogin(user: "a", password: "hidden") },
            answers: { BrokerAddress(of: port, as: $0) }, body)
    }

    /// How a client says who it is.
    enum Identity: CaseIterable { case none, certificate, password }

    private static func settings(
        _ proxy: TLSProxy, _ identity: Identity = .none, mechanism: String = "PLAIN", password: String = "hidden"
    ) throws -> KafkaSettings {
        let own =
            switch identity {
            case .none: "security.protocol=ssl"
            case .certificate:
                "security.protocol=ssl\nssl.certificate.location=\(proxy.certificate)\nssl.key.location=\(proxy.key)"
            case .password: "security.protocol=sasl_ssl\nsasl.mechanism=\(mechanism)\nsasl.username=a\nsasl.password=\(password)"
            }
        return try KafkaSettings(parsing: "ssl.ca.location=\(proxy.certificate)\n\(own)\n", file: "kafka.conf")
    }

    private static func configuration(_ proxy: TLSProxy, _ settings: KafkaSettings) -> KafkaConfiguration {
        var configuration = KafkaConfiguration(bootstrapServers: "127.0.0.1:\(proxy.port)", clientID: "test", settings: settings)
        configuration.requestTimeout = .seconds(3)
        configuration.deliveryTimeout = .seconds(3)
        return configuration
    }

    /// What making a topic fails with.
    private static func refusal(_ configuration: KafkaConfiguration, _ logger: Logger = Logger.quiet) async throws -> SluiceError? {
        let log = try KafkaLog(configuration, logger: logger)
        defer { Task { await log.close() } }
        do {
            _ = try await log.prepare([TopicSpec(name: "refused", partitions: 1)])
            return nil
        } catch {
            return error as? SluiceError
        }
    }

    /// By the producer, by readers, and by whoever asks for topics and offsets: none of them gets past the proxy.
    @Test(arguments: Identity.allCases) func `is made, written and read by clients with the settings`(identity: Identity) async throws {
        try await Self.with(asksClients: identity == .certificate) { proxy in
            let log = try KafkaLog(Self.configuration(proxy, try Self.settings(proxy, identity)), logger: Logger.quiet)
            let place = LogPartition("tls-\(UUID().uuidString.prefix(13).lowercased())", 1)
            #expect(try await log.prepare([TopicSpec(name: place.topic, partitions: 2)]) == [2])
            var batch = LogBatch(topics: [place.topic])
            batch.append(topic: 0, partition: 1, key: [1], value: [7])
            #expect(try await log.append(batch) == [place: 1])
            try await log.withReader { reader in
                try await reader.assign([place: 0])
                var fetch = LogFetch()
                let end = ContinuousClock.now + patience
                while fetch.entries.isEmpty, .now < end { fetch = try await reader.next(fetch, milliseconds: 1_000) }
                #expect(fetch.entries.map { Array(fetch.arena[$0.value]) } == [[7]])
            }
            #expect(log.trouble == nil)
            await log.close()
        }
    }

    @Test func `with a certificate that is not trusted is refused in the library's words`() async throws {
        try await Self.with { proxy in
            try proxy.show(stranger: true)
            let error = try await Self.refusal(Self.configuration(proxy, try Self.settings(proxy)))
            #expect(error?.code == .logUnreachable)
            #expect(
                error?.message.contains("127.0.0.1:\(proxy.port)") == true
                    && error?.operatorText.contains("certificate verify failed") == true,
                "\(String(describing: error))")
        }
    }

    @Test func `is what a client without it is told to try`() async throws {
        try await Self.with { proxy in
            let error = try await Self.refusal(Self.configuration(proxy, [:]))
            #expect(error?.operatorText.contains("security.protocol") == true, "\(String(describing: error))")
        }
    }

    @Test func `that asks for a certificate refuses a client without one`() async throws {
        try await Self.with(asksClients: true) { proxy in
            let error = try await Self.refusal(Self.configuration(proxy, try Self.settings(proxy)))
            #expect(error?.operatorText.contains(/alert|certificate/) == true, "\(String(describing: error))")
        }
    }

    /// The proxy has no SCRAM, and one password.
    @Test(arguments: [("SCRAM-SHA-512", "hidden"), ("PLAIN", "hidden-and-wrong")])
    func `with a log-in that the broker does not take is refused in the library's words`(mechanism: String, password: String) async throws {
        try await Self.with { proxy in
            let log = LinesOfLog()
            let settings = try Self.settings(proxy, .password, mechanism: mechanism, password: password)
            let error = try await Self.refusal(Self.configuration(proxy, settings), Logger(label: "test") { _ in log })
            #expect(
                error?.operatorText.contains("SASL") == true && error?.description.contains("hidden") == false,
                "\(String(describing: error))")
            #expect(log.lines.contains { $0.message == "A connection to Kafka failed." && $0.level == .warning }, "\(log.lines)")
            #expect(!"\(log.lines)".contains("hidden"))
        }
    }

    @Test func `that breaks is told in the log and by the admin port, and is used again when it is well`() async throws {
        try await Self.with { proxy in
            let log = LinesOfLog()
            let settings = try Self.settings(proxy)
            let app = "shop-\(UUID().uuidString.prefix(8).lowercased())"
            let files = ShopApp.files.merging(["realm_config.json": #"{ "app_id": "\#(app)", "name": "shop" }"#]) { $1 }
            try await RunningGateway.deploy { deployment in
                try await deployment.run(
                    files, kafka: "127.0.0.1:\(proxy.port)", kafkaSettings: settings, logger: Logger(label: "test") { _ in log }
                ) { gateway in
                    try await gateway.sql("INSERT INTO orders (_id, store) VALUES ('a', 'north')")
                    try await gateway.untilMetric("sluice_published_records_total", is: 1)
                    try proxy.show(stranger: true)
                    try await gateway.sql("INSERT INTO orders (_id, store) VALUES ('b', 'north')")
                    let told = try await Self.until(gateway) {
                        $0.contains { $0["cause"]?.string?.contains("certificate verify failed") == true }
                    }
                    #expect(told.status == 503, "\(told)")
                    // It names brokers: no business of whoever may ask the other port.
                    let outside = try await gateway.request("GET", "/ready")
                    #expect(outside.status == 503 && !outside.json.text.contains("certificate"), "\(outside)")
                    try proxy.show(stranger: false)
                    #expect(try await Self.until(gateway) { $0.isEmpty }.status == 200)
                }
            }
            let told = log.lines.filter { $0.message == "A connection to Kafka failed." && $0.level == .warning }
            #expect(told.contains { $0.metadata["error"]?.description.contains("certificate verify failed") == true }, "\(log.lines)")
        }
    }

    /// Asks the admin port until it tells of such problems.
    private static func until(_ gateway: RunningGateway, _ isSo: ([JSON]) -> Bool) async throws -> RunningGateway.Answer {
        let told = try await found(every: .milliseconds(100)) {
            let answer = try await gateway.request("GET", "/ready", admin: true)
            return isSo(answer.json["problems"]?.array ?? []) ? answer : nil
        }
        return try #require(told, "the problems are others")
    }
}

/// Has a broker's answers name another port as its own, so that clients go there for everything.
private final class BrokerAddress: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let old: [UInt8]
    private let new: [UInt8]
    private var pending = ByteBuffer()

    init(of old: Int, as new: Int) {
        self.old = Self.bytes(old)
        self.new = Self.bytes(new)
    }

    /// A port as metadata has it, behind a host's name.
    private static func bytes(_ port: Int) -> [UInt8] { withUnsafeBytes(of: UInt32(port).bigEndian) { Array($0) } }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var piece = unwrapInboundIn(data)
        pending.writeBuffer(&piece)
        while let size = pending.getInteger(at: pending.readerIndex, as: UInt32.self),
            var frame = pending.readSlice(length: 4 + Int(size))
        {
            let bytes = Array(frame.readableBytesView)
            for start in bytes.indices.dropLast(3)
            where start > 8 && Self.endsHost(bytes[start - 1]) && Array(bytes[start..<start + 4]) == old {
                frame.setBytes(new, at: frame.readerIndex + start)
            }
            context.fireChannelRead(wrapInboundOut(frame))
        }
    }

    /// Of `127.0.0.1`, or of `localhost`.
    private static func endsHost(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "1") || byte == UInt8(ascii: "t") }
}

/// Takes the log-ins of clients in a broker's place, so that the tests need no broker with SASL. Everything else is passed on.
///
/// A log-in is a `SaslHandshake` with the mechanism and a `SaslAuthenticate` with `\0user\0password` (Kafka's protocol guide, RFC 4616).
private final class PlainLogin: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private static let (handshake, authenticate): (Int16, Int16) = (17, 36)
    private static let (unsupportedMechanism, failed): (Int16, Int16) = (33, 58)

    private let token: [UInt8]
    private var pending = ByteBuffer()

    init(user: String, password: String) { token = Array("\0\(user)\0\(password)".utf8) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var piece = unwrapInboundIn(data)
        pending.writeBuffer(&piece)
        while let size = pending.getInteger(at: pending.readerIndex, as: UInt32.self), let frame = pending.readSlice(length: 4 + Int(size))
        {
            if let answer = answer(to: frame) {
                var whole = context.channel.allocator.buffer(capacity: 4 + answer.readableBytes)
                whole.writeInteger(UInt32(answer.readableBytes))
                whole.writeImmutableBuffer(answer)
                context.writeAndFlush(wrapOutboundOut(whole), promise: nil)
            } else {
                context.fireChannelRead(wrapInboundOut(frame))
            }
        }
    }

    /// - Returns: nil for a request that is not of a log-in.
    private func answer(to frame: ByteBuffer) -> ByteBuffer? {
        var request = frame
        guard request.readInteger(as: UInt32.self) != nil, let kind = request.readInteger(as: Int16.self),
            let version = request.readInteger(as: Int16.self), let correlation = request.readInteger(as: Int32.self),
            [Self.handshake, Self.authenticate].contains(kind), let name = request.readInteger(as: Int16.self)
        else { return nil }
        request.moveReaderIndex(forwardBy: max(0, Int(name)))
        var answer = ByteBuffer(integer: correlation)
        if kind == Self.handshake {
            let mechanism = request.readLengthPrefixedSlice(as: Int16.self).map { String(buffer: $0) }
            answer.writeInteger(mechanism == "PLAIN" ? Int16(0) : Self.unsupportedMechanism)
            answer.writeInteger(Int32(1))
            answer.writeInteger(Int16(5))
            answer.writeString("PLAIN")
        } else {
            let isRight = request.readLengthPrefixedSlice(as: Int32.self).map { Array($0.readableBytesView) } == token
            answer.writeInteger(isRight ? Int16(0) : Self.failed)
            answer.writeInteger(Int16(-1))
            answer.writeInteger(Int32(0))
            if version >= 1 { answer.writeInteger(Int64(0)) }
        }
        return answer
    }
}
