import FoundationEssentials
package import SluiceCore
package import SluiceKafka

/// Kafka's address and settings, from the command line and a file of librdkafka properties.
package enum KafkaFile {
    /// Reads the file and reconciles it with the servers.
    ///
    /// - Parameters:
    ///   - servers: Bootstrap servers; nil or empty to use those of the file.
    ///   - file: The path; nil or empty for no settings.
    /// - Returns: The bootstrap servers, nil for the embedded log, and the settings of each Kafka client.
    /// - Throws: `configInvalid`, without any value of the file, as it may hold secrets.
    package static func read(servers: String?, file: String?) throws(SluiceError) -> (servers: String?, settings: KafkaSettings) {
        // An environment variable may be set but empty.
        let servers = servers?.isEmpty == true ? nil : servers
        guard let file, !file.isEmpty else { return (servers, [:]) }
        let bytes: Data
        do {
            bytes = try Data(contentsOf: URL(filePath: file))
        } catch {
            throw SluiceError(
                .configInvalid, "\(file): this file cannot be read: \(reason(error)).", fix: "Correct --kafka-config, or its mode.")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw SluiceError(.configInvalid, "\(file): this file is not text in UTF-8.", fix: "Name a file of name=value lines.")
        }
        var settings = try KafkaSettings(parsing: text, file: file)
        guard let own = try settings.takeServers() else {
            guard servers != nil else {
                throw SluiceError(
                    .configInvalid, "\(file): it has settings for Kafka, but no Kafka is named.",
                    fix: "Pass --kafka, set SLUICE_KAFKA, or write bootstrap.servers into the file.")
            }
            return (servers, settings)
        }
        // Either choice could be the wrong cluster, so a contradiction is an error.
        guard servers == nil || servers == own.servers else {
            throw SluiceError(
                .configInvalid, "\(own.place)these brokers differ from those of --kafka or SLUICE_KAFKA.",
                fix: "Name them in one place.")
        }
        return (own.servers, settings)
    }

    private static func reason(_ error: any Error) -> String {
        switch (error as? CocoaError)?.code {
        case .fileReadNoSuchFile?: "it does not exist"
        case .fileReadNoPermission?: "its mode does not allow it"
        default: "\(error)"
        }
    }
}
