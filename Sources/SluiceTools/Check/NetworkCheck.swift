import SluiceCore
import SluiceGateway
import SluiceNet
import SluiceValues

/// Collects the facts about ports and the public address for `sluice check`.
struct NetworkCheck: Sendable {
    let options: GatewayCheck.Options
    let environment: any Environment

    init(_ options: GatewayCheck.Options, environment: any Environment) {
        self.options = options
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
                ports: await [client, admin], adminToken: adminToken, certificate: await certificate,
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
            return .init(host: host, port: port, option: option, problem: nil, hasGateway: false)
        } catch {
            let problem = SluiceError(of: error) ?? SluiceError(.configInvalid, "\(host):\(port) cannot be used: \(error)")
            let isTaken = problem.code == .portInUse
            return .init(
                host: host, port: port, option: option, problem: problem, hasGateway: isTaken ? await hasGateway(host, port) : false)
        }
    }

    /// Returns `true` if the port answers as a gateway does.
    private func hasGateway(_ host: String, _ port: Int) async -> Bool {
        let address = ["0.0.0.0", "::"].contains(host) ? "127.0.0.1" : host
        let client = GatewayClient(url: "http://\(address.contains(":") ? "[\(address)]" : address):\(port)", patience: 5)
        let answer = try? await client.get("/health", [:])
        return answer?.status == 200 && answer?.json["status"]?.string == "ok"
    }

    private func certificate() async -> NetworkFindings.Certificate {
        guard let origin = options.network.publicOrigin else { return .none }
        let url = origin.url
        guard origin.isSecure else { return .plain(url: url) }
        do throws(SluiceError) {
            return .valid(url: url, until: try await TLSProbe.certificateEnd(of: origin))
        } catch { return .refused(url: url, error) }
    }
}
