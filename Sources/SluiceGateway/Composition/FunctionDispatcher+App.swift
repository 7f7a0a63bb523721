import Logging
import SluiceCore
import SluiceIdentity
import SluicePorts

extension FunctionDispatcher {
    /// Makes the functions of an app, with the secrets of their services.
    ///
    /// - Throws: As `AppSecrets.text(of:in:)`.
    static func open(
        _ app: AppConfiguration, http: any OutboundHTTP, plugins: any FunctionPlugins, metrics: Metrics, environment: any Environment,
        logger: Logger
    ) throws(SluiceError) -> FunctionDispatcher {
        let variables = ProcessEnvironment()
        var keys: [String: [UInt8]] = [:]
        for function in app.functions {
            guard case .webhook(let target) = function.target, keys[target.secret] == nil else { continue }
            let name = target.secret
            keys[name] = Array(try app.secrets.text(of: name, in: variables).utf8)
        }
        return FunctionDispatcher(
            app.functions, of: app.functionFacts, keys: keys,
            ports: .init(
                http: http, plugins: plugins, environment: environment, logger: logger,
                called: { function, nanoseconds, error in
                    metrics.number(.functionCalls, label: function).add()
                    if error != nil { metrics.number(.functionFailures, label: function).add() }
                    metrics.histogram(.functionSeconds, label: function).observe(nanoseconds: nanoseconds)
                }))
    }
}

extension AppConfiguration {
    /// The facts that conditions and arguments of functions need.
    var functionFacts: FunctionFacts { .init(id: appID, values: values, environmentTag: environmentTag) }
}
