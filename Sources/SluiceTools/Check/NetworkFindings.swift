package import SluiceCore
import SluiceGateway

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
        /// The app id of the gateway that answers on it; nil if none does.
        package var gateway: String?

        package init(host: String, port: Int, option: String, problem: SluiceError?, gateway: String? = nil) {
            self.host = host
            self.port = port
            self.option = option
            self.problem = problem
            self.gateway = gateway
        }

        /// `true` if one socket at most can have both.
        fileprivate func overlaps(_ other: Port) -> Bool {
            let hosts = [host, other.host]
            return port != 0 && port == other.port && (host == other.host || hosts.contains("0.0.0.0") || hosts.contains("::"))
        }
    }

    /// The certificate of an address or in a file.
    package enum Certificate: Hashable, Sendable {
        case none
        /// The public address has no TLS.
        case plain(url: String)
        /// The end of its validity, in seconds since 1970.
        case valid(place: String, until: Int64)
        case refused(place: String, SluiceError)
    }

    package var ports: [Port]
    /// The app id; nil if none is known.
    package var app: String?
    /// The error of an admin port without a token; nil if it needs none.
    package var adminToken: SluiceError?
    /// The certificate of the public address.
    package var certificate: Certificate
    /// The certificate of the client port.
    package var ownCertificate: Certificate
    /// The time, in seconds since 1970.
    package var now: Int64

    package init(
        ports: [Port], app: String? = nil, adminToken: SluiceError? = nil, certificate: Certificate = .none,
        ownCertificate: Certificate = .none, now: Int64
    ) {
        self.ports = ports
        self.app = app
        self.adminToken = adminToken
        self.certificate = certificate
        self.ownCertificate = ownCertificate
        self.now = now
    }

    package var findings: [CheckFinding] {
        (clashes.isEmpty ? ports.compactMap(finding) : clashes)
            + (adminToken.map { [CheckFinding(.error, .network, "--admin-host", $0, commands: ["sluice admin-token --add-to FILE"])] } ?? [])
            + findings(certificate, "--public-url", refusal: .warning) + findings(ownCertificate, "--tls-certificate", refusal: .error)
    }

    /// The ports that one gateway cannot have at the same time, whether they are free or not.
    private var clashes: [CheckFinding] {
        ports.indices.flatMap { index in
            ports[..<index].filter(ports[index].overlaps).map { first in
                CheckFinding(
                    .error, .network, ports[index].option, "\(first.option) and \(ports[index].option) are both \(first.port).",
                    fix: "Choose another \(ports[index].option).")
            }
        }
    }

    private func finding(_ port: Port) -> CheckFinding? {
        guard let problem = port.problem else { return nil }
        if let gateway = port.gateway, gateway == app {
            return CheckFinding(.note, .network, port.option, "A gateway serves port \(port.port) of \(port.host).")
        }
        let commands = problem.code == .portInUse ? ["ss -ltnp 'sport = :\(port.port)'"] : []
        guard let gateway = port.gateway else { return CheckFinding(.error, .network, port.option, problem, commands: commands) }
        return CheckFinding(
            .error, .network, port.option, "A gateway of the app \(gateway) serves port \(port.port) of \(port.host).",
            fix: "Stop it, or choose another \(port.option).", commands: commands)
    }

    private func findings(_ certificate: Certificate, _ option: String, refusal: CheckFinding.Severity) -> [CheckFinding] {
        switch certificate {
        case .none: return []
        case .plain(let url):
            return [
                CheckFinding(
                    .warning, .network, option,
                    "The public address \(url) has no TLS: tokens and data cross the network in clear text.",
                    fix:
                        "Serve TLS with --tls-certificate and --tls-key, or by a proxy in front of the gateway, and name the https address."
                )
            ]
        case .refused(let place, let error): return [CheckFinding(refusal, .network, "\(option) \(place)", error)]
        case .valid(let place, let end):
            let days = (end - now) / 86_400
            guard days < CertificateAlarm.days else { return [] }
            return [
                CheckFinding(.warning, .network, option, "The certificate of \(place) expires in \(days) days.", fix: "Renew it.")
            ]
        }
    }
}
