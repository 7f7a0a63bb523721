import SluiceCore
import SluiceGateway
import SluiceNet
import SluiceValues

/// Collects the facts about ports and the public address for `sluice check`.
struct NetworkCheck: Sendable {
    let options: GatewayCheck.Options
    /// The app id; nil if none is known.
    let app: String?
    let environment: any Environment

    init(_ options: GatewayCheck.Options, app: String?, environment: any Environment) {
        self.options = options
        self.app = app
        self.environment = environment
    }

    func run() async -> CheckReport {
        let network = options.network
        async let client = port(network.host, network.port, "--port")
        async let admin = port(network.adminHost, network.adminPort, "--admin-port")
        async let certificate = certificate()
        var report = CheckReport()
        report.add(
            NetworkFindings(
                ports: await [client, admin], app: app, adminToken: adminToken, certificate: await certificate,
                ownCertificate: ownCertificate,
                now: environment.wallMilliseconds() / 1_000
            ).findings)
        return report
    }

    private var adminToken: SluiceError? {
        do throws(SluiceError) {
            try GatewayConfiguration.requireAdminToken(options.admin, host: options.network.adminHost)
            return nil
        } catch { return error }
    }

    private func port(_ host: String, _ port: Int, _ option: String) async -> NetworkFindings.Port {
        var server = NetServer.Configuration(host: host, port: port)
        server.portOption = option
        do {
            try await server.requireFreePort()
            return .init(host: host, port: port, option: option, problem: nil)
        } catch {
            let problem = SluiceError(of: error) ?? SluiceError(.configInvalid, "\(host):\(port) cannot be used: \(error)")
            let gateway = problem.code == .portInUse ? await gateway(host, port) : nil
            return .init(host: host, port: port, option: option, problem: problem, gateway: gateway)
        }
    }

    /// Returns the app of the gateway that answers on the port; nil for another program. A client port with TLS is not asked, but the admin
    /// port of the same gateway.
    private func gateway(_ host: String, _ port: Int) async -> String? {
        let network = options.network
        let (host, port) = network.tls == nil ? (host, port) : (network.adminHost, network.adminPort)
        let address = ["0.0.0.0", "::"].contains(host) ? "127.0.0.1" : host
        let client = GatewayClient(url: "http://\(address.contains(":") ? "[\(address)]" : address):\(port)", patience: 5)
        return try? await client.app()
    }

    private func certificate() async -> NetworkFindings.Certificate {
        guard let origin = options.network.publicOrigin else { return .none }
        let url = origin.url
        guard origin.isSecure else { return .plain(url: url) }
        do throws(SluiceError) {
            return .valid(place: url, until: try await TLSProbe.certificateEnd(of: origin))
        } catch { return .refused(place: url, error) }
    }

    private var ownCertificate: NetworkFindings.Certificate {
        guard let files = options.network.tls else { return .none }
        do throws(SluiceError) {
            return .valid(place: files.certificateChain, until: try files.certificateEnd())
        } catch { return .refused(place: files.certificateChain, error) }
    }
}
