import GRDB

extension DatabaseQueue {
    /// A replica's file, by way of the layer that it needs, which a replica has made known. One that was just let go of may hold the file
    /// for a moment yet.
    convenience init(replica path: String) throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(10)
        try self.init(path: "file:\(path)?vfs=sluice", configuration: configuration)
    }
}
