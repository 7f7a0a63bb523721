import Logging
import ServiceLifecycle
import SluiceCore
import SluiceMail
import SluiceNet
import SluicePorts

/// The mails of a gateway, if `sluice.json` names a mail server.
struct GatewayMail: Sendable {
    private let mailer: SMTPMailer
    let accounts: AccountMail

    var service: any Service { BackgroundService("mail") { [mailer] in try await mailer.run() } }

    /// - Returns: nil without a mail server.
    /// - Throws: `configMissing` or `configInvalid` if the password cannot be read.
    static func open(
        _ configuration: GatewayConfiguration, metrics: Metrics, environment: any Environment, logger: Logger
    ) throws(SluiceError) -> GatewayMail? {
        guard let settings = configuration.app.mail else { return nil }
        let server = try settings.server(configuration.app.secrets, in: ProcessEnvironment())
        let mailer = SMTPMailer(server, environment: environment, logger: logger) { outcome in
            metrics.number(.mails, label: outcome.rawValue).add()
        }
        if configuration.network.publicOrigin == nil, configuration.app.users.passwordLogin.needsPages {
            logger.warning(
                "Links in mails lead to the address of the client port, as the gateway has no public address.",
                metadata: ["url": .string(origin(configuration.network)), "fix": "Start the gateway with --public-url."])
        }
        return GatewayMail(mailer: mailer, accounts: accounts(settings, configuration, mailer))
    }

    private static func accounts(_ settings: MailSettings, _ configuration: GatewayConfiguration, _ mailer: SMTPMailer) -> AccountMail {
        let (app, login) = (configuration.app, configuration.app.users.passwordLogin)
        let origin = origin(configuration.network)
        return AccountMail(
            mailer: mailer, app: app.name,
            confirmation: .init(
                subject: login.confirmSubject ?? "Confirm your e-mail address", templates: settings.confirmation,
                page: login.confirmPage ?? AccountPages.url("confirm", origin: origin, app: app.appID)),
            reset: .init(
                subject: login.resetSubject ?? "Set a new password", templates: settings.reset,
                page: login.resetPage ?? AccountPages.url("reset", origin: origin, app: app.appID)))
    }

    private static func origin(_ network: GatewayConfiguration.Network) -> String {
        network.publicOrigin?.url ?? Gateway.Addresses.url(network.host, network.port, isSecure: network.tls != nil)
    }
}
