import Foundation
import GatewayTestSupport
import NIOSSL
import SluiceCore
import SluiceGateway
import SluiceNet
import SluicePostgres
import SluiceSync
import SluiceValues
import SluiceWire
import TestSupport
import Testing

@Suite struct `The certificate of a gateway` {
    private static func write(_ certificate: String, _ key: String, _ files: TLSFiles) throws {
        try Data(certificate.utf8).write(to: URL(filePath: files.certificateChain))
        try Data(key.utf8).write(to: URL(filePath: files.privateKey))
    }

    private static func trusting(_ certificate: String) throws -> TLSConfiguration {
        var configuration = TLSConfiguration.gatewayClient()
        configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)))
        return configuration
    }

    @Test func `serves HTTPS and secure WebSockets, and is renewed while clients stay connected`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "sluice-certificate-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = TLSFiles(
            certificateChain: folder.appending(path: "chain.pem").path(), privateKey: folder.appending(path: "key.pem").path())
        try Self.write(TestCertificate.certificate, TestCertificate.key, files)
        try await GatewayDatabase.with { conninfo in
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script(ShopApp.tables)
            await connection.close()
            let configuration = GatewayConfiguration(
                app: try ShopApp.configuration(files: ShopApp.files), postgres: conninfo, kafka: nil,
                network: .init(port: 0, adminPort: 0, tls: files))
            try await RunningGateway.run(configuration) { gateway in
                #expect(gateway.url.hasPrefix("https://127.0.0.1:"))
                let (old, new) = (try Self.trusting(TestCertificate.certificate), try Self.trusting(TestCertificate.stranger))
                let location = try await HTTPTransport(tls: old).send(
                    .init(method: "GET", url: "\(gateway.url)/api/client/v2.0/app/shop/location", milliseconds: 10_000))
                let names = try JSON.parse(location.body)
                #expect(names["hostname"]?.string == gateway.url)
                #expect(names["ws_hostname"]?.string?.hasPrefix("wss://") == true)
                let socket = try await WebSocketTransport(tls: old).connect(
                    SyncRequest(url: gateway.url.replacing("https", with: "wss") + WireProtocol.path(app: "shop")))
                try Self.write(TestCertificate.stranger, TestCertificate.strangerKey, files)
                let origin = try ServerOrigin(url: gateway.url)
                let isRenewed = try await eventually(every: .milliseconds(100)) {
                    (try? await TLSProbe.certificateEnd(of: origin, tls: new)) != nil
                }
                #expect(isRenewed)
                let end = try #require(try NIOSSLCertificate.fromPEMBytes(Array(TestCertificate.stranger.utf8)).first).notValidAfter
                try await gateway.untilMetric("sluice_certificate_end_timestamp_seconds", is: Double(end))
                // The earlier connection has its answer still.
                try await socket.send([0xFF])
                #expect(try await socket.next() != nil)
                socket.close()
            }
        }
    }
}
