package import SluiceCore

/// The judgement of ports, the public address and its certificate: facts in, findings out.
package struct NetworkFindings: Sendable {
    /// A port that a gateway listens on.
    package struct Port: Hashable, Sendable {
        package var host: String
        package var port: Int
        /// The option that sets it.
        package var option: String
        /// The error of binding it; nil if it is free.
        package var problem: SluiceError?
        /// `true` if a gateway answers on it.
        package var hasGateway: Bool

        package init(host: String, port: Int, option: String, problem: SluiceError?, hasGateway: Bool) {
            self.host = host
            self.port = port
            self.option = option
            self.problem = problem
            self.hasGateway = hasGateway
        }
    }

    /// The certificate of the public address.
    package enum Certificate: Hashable, Sendable {
        /// There is no public address.
        case none
        /// The public address has no TLS.
        case plain(url: String)
        /// The end of its validity, in seconds since 1970.
        case valid(url: String, until: Int64)
        case refused(url: String, SluiceError)
    }

    package var ports: [Port]
    /// The error of an admin port without a token; nil if it needs none.
    package var adminToken: SluiceError?
    package var certificate: Certificate
    /// The time, in seconds since 1970.
    package var now: Int64

    /// The days before the end of a certificate from which on there is a warning.
    static let renewal: Int64 = 14

    package init(ports: [Port], adminToken: SluiceError? = nil, certificate: Certificate = .none, now: Int64) {
        self.ports = ports
        self.adminToken = adminToken
        self.certificate = certificate
        self.now = now
    }

    package var findings: [CheckFinding] {
        ports.compactMap(finding)
            + (adminToken.map { [CheckFinding(.error, .network, "--admin-host", $0, commands: ["sluice admin-token --add-to FILE"])] } ?? [])
            + certificateFindings
    }

    private func finding(_ port: Port) -> CheckFinding? {
        guard let problem = port.problem else { return nil }
        if port.hasGateway {
            return CheckFinding(.note, .network, port.option, "A gateway serves port \(port.port) of \(port.host).")
        }
        return CheckFinding(
            .error, .network, port.option, problem, commands: problem.code == .portInUse ? ["ss -ltnp 'sport = :\(port.port)'"] : [])
    }

    private var certificateFindings: [CheckFinding] {
        switch certificate {
        case .none: return []
        case .plain(let url):
            return [
                CheckFinding(
                    .warning, .network, "--public-url",
                    "The public address \(url) has no TLS: tokens and data cross the network in clear text.",
                    fix: "Put a proxy with TLS in front of the gateway, and name its https address.")
            ]
        case .refused(let url, let error):
            return [CheckFinding(.warning, .network, "--public-url \(url)", error)]
        case .valid(let url, let end):
            let days = (end - now) / 86_400
            guard days < Self.renewal else { return [] }
            return [
                CheckFinding(
                    .warning, .network, "--public-url", "The certificate of \(url) expires in \(days) days.", fix: "Renew it.")
            ]
        }
    }
}
