import Logging
import SluiceCore
import SluicePipeline
import SluicePluginHost

/// Looks every second whether a schema has been applied, and takes up what it adds: nobody has to restart, and no session ends.
///
/// One that takes something away is for gateways that start with its app directory; this one says so and goes on as it is.
struct SchemaWatch: Sendable {
    let applied: AppliedSchema
    let schema: GatewaySchema
    let chain: PluginChain
    let app: AppConfiguration
    let environment: any Environment
    let logger: Logger

    private static let pause: UInt64 = 1_000_000_000

    func run() async throws {
        while !Task.isCancelled {
            try await environment.sleep(nanoseconds: Self.pause)
            do {
                try await look()
            } catch let error as SluiceError where error.code == .postgresUnreachable || error.code == .timeout {
                logger.debug("The applied schema could not be asked for.", metadata: ["error": "\(error)"])
            } catch let error as SluiceError {
                logger.error("The applied schema cannot be taken up; it is tried again.", metadata: ["error": "\(error)"])
            }
        }
    }

    private func look() async throws {
        guard let (version, record) = try await applied.news() else { return }
        do {
            try await schema.adopt(record, version: version) { [chain, app] grown in
                try await chain.configure(
                    app: AppDescription.json(appID: app.appID, directory: app.files, schema: grown.schema, queryableFields: grown.fields))
            }
            logger.notice("An applied schema was taken up.", metadata: ["version": "\(version)"])
        } catch let error as SluiceError where error.code == .breakingSchemaChange {
            logger.error("A schema was applied that this gateway can only take up by a restart.", metadata: ["error": "\(error)"])
        }
        applied.took(version)
    }
}
