import Logging
import SluiceCore
import SluiceIdentity
import SluicePorts

extension WebhookFunctions {
    /// Makes the functions of an app, with the secrets of their services.
    ///
    /// - Throws: As `AppSecrets.text(of:in:)`.
    static func open(
        _ app: AppConfiguration, http: any OutboundHTTP, metrics: Metrics, environment: any Environment, logger: Logger
    ) throws(SluiceError) -> WebhookFunctions {
        let variables = ProcessEnvironment()
        var keys: [String: [UInt8]] = [:]
        for name in Set(app.functions.compactMap { $0.target?.secret }) {
            keys[name] = Array(try app.secrets.text(of: name, in: variables).utf8)
        }
        return WebhookFunctions(
            app.functions, of: app.functionFacts, keys: keys,
            ports: .init(
                http: http, environment: environment, logger: logger,
                called: { function, nanoseconds, error in
                    metrics.number(.functionCalls, label: function).add()
                    if error != nil { metrics.number(.functionFailures, label: function).add() }
                    metrics.histogram(.functionSeconds, label: function).observe(nanoseconds: nanoseconds)
                }))
    }
}

extension AppConfiguration {
    /// The facts that conditions and arguments of functions need.
    var functionFacts: WebhookFunctions.App { .init(id: appID, values: values, environmentTag: environmentTag) }
}
