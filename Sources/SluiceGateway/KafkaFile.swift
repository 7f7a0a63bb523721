import FoundationEssentials
package import SluiceCore
package import SluiceKafka

/// Kafka as the command line and a file of librdkafka's properties name it.
package enum KafkaFile {
    /// - Parameters:
    ///   - servers: bootstrap servers; nil: those of the file.
    ///   - file: its path; nil: nothing is set.
    /// - Returns: the bootstrap servers, nil for the embedded log, and the settings of every client of theirs.
    /// - Throws: `configInvalid`, without any value of the file.
    package static func read(servers: String?, file: String?) throws(SluiceError) -> (servers: String?, settings: KafkaSettings) {
        // A variable that is there and says nothing.
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
                    .configInvalid, "\(file): there are settings for Kafka, and no Kafka is named.",
                    fix: "Pass --kafka, set SLUICE_KAFKA, or write bootstrap.servers into the file.")
            }
            return (servers, settings)
        }
        // Whichever won, somebody would have meant the other.
        guard servers == nil || servers == own.servers else {
            throw SluiceError(
                .configInvalid, "\(own.place)these brokers are others than those of --kafka or SLUICE_KAFKA.",
                fix: "Name them in one place.")
        }
        return (own.servers, settings)
    }

    private static func reason(_ error: any Error) -> String {
        switch (error as? CocoaError)?.code {
        case .fileReadNoSuchFile?: "there is none"
        case .fileReadNoPermission?: "its mode does not allow it"
        default: "\(error)"
        }
    }
}
