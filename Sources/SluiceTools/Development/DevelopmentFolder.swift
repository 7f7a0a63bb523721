import FoundationEssentials
import SluiceCore
import SluiceGateway

/// The folder of the development data: the named one, or a temporary one that is removed at the end.
struct DevelopmentFolder {
    let path: String
    private let isTemporary: Bool

    init(_ named: String?) throws(SluiceError) {
        let manager = FileManager.default
        isTemporary = named == nil
        var path = named ?? "\(ProcessEnvironment()["TMPDIR"] ?? "/tmp")/sluice-dev-\(UUID().uuidString)"
        if !path.hasPrefix("/") { path = manager.currentDirectoryPath + "/" + path }
        self.path = path
        do {
            try manager.createDirectory(atPath: path, withIntermediateDirectories: true)
        } catch {
            throw SluiceError(
                .configInvalid, "The folder \(path) cannot be created.", fix: "Name another with --data-dir.", cause: ErrorCause(error))
        }
    }

    func removeIfTemporary() {
        if isTemporary { try? FileManager.default.removeItem(atPath: path) }
    }
}
