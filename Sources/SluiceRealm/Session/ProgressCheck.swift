package import SluiceCore
package import SluicePorts

/// The checks that a client makes on the progress of each DOWNLOAD. If one fails, the client stops syncing until its app restarts.
package struct ProgressCheck: Hashable, Sendable {
    /// The progress of the last message.
    package private(set) var last: RealmProgress
    /// The cursor that the client's file has. It stays while the parts of a bootstrap arrive.
    private var cursor: RealmDownloadCursor
    /// The file ident of the client, which is never the origin of an entry.
    package let file: UInt64
    /// The query version of the last complete view.
    package private(set) var queryVersion: UInt64
    /// The parts of a bootstrap that the client has; nil between bootstraps.
    private var parts: Parts?
    /// The highest version that the client is known to have made.
    private var newestClientVersion: UInt64

    private struct Parts: Hashable, Sendable {
        var queryVersion: UInt64
        var entries: Int
    }

    /// The state after the client's IDENT.
    package init(_ ident: RealmIdent, upload: RealmUploadProgress) {
        file = ident.file.ident
        queryVersion = ident.query.version
        cursor = ident.download
        newestClientVersion = max(ident.download.clientVersion, upload.clientVersion)
        last = RealmProgress(download: ident.download, latest: ident.latest, upload: RealmUploadProgress())
    }

    /// Records a version that the client has named in an UPLOAD.
    package mutating func uploaded(_ clientVersion: UInt64) { newestClientVersion = max(newestClientVersion, clientVersion) }

    /// Checks a DOWNLOAD as the client does, and records it.
    /// - Throws: `internalError` with the number at fault.
    package mutating func check(_ download: RealmDownload) throws(SluiceError) {
        try checkProgress(download.progress)
        try checkEntries(download)
        switch download.batch {
        case .steadyState:
            guard parts == nil else { throw Self.defect("interrupts a bootstrap") }
            guard download.queryVersion == queryVersion else { throw Self.defect("names query version \(download.queryVersion)") }
        case .moreToCome, .lastInBatch:
            guard download.queryVersion >= queryVersion else { throw Self.defect("returns to query version \(download.queryVersion)") }
            // Parts of another query version are discarded.
            let before = parts?.queryVersion == download.queryVersion ? parts?.entries ?? 0 : 0
            let entries = before + download.entries.count
            if download.batch == .moreToCome {
                parts = Parts(queryVersion: download.queryVersion, entries: entries)
            } else {
                // The client would never finish a bootstrap without an entry.
                guard entries > 0 else { throw Self.defect("ends a bootstrap without an entry") }
                queryVersion = download.queryVersion
                parts = nil
            }
        }
        guard (0...1).contains(download.estimate) else { throw Self.defect("estimates a progress of \(download.estimate)") }
        last = download.progress
        if parts == nil { cursor = download.progress.download }
    }

    private func checkProgress(_ next: RealmProgress) throws(SluiceError) {
        let (download, upload) = (next.download, next.upload)
        try Self.require(next.latest.version >= last.latest.version, "latest version \(next.latest.version) goes back")
        try Self.require(download.serverVersion >= last.download.serverVersion, "server version \(download.serverVersion) goes back")
        try Self.require(download.serverVersion <= next.latest.version, "server version \(download.serverVersion) beyond the latest")
        try Self.require(download.clientVersion >= last.download.clientVersion, "client version \(download.clientVersion) goes back")
        try Self.require(upload.clientVersion >= last.upload.clientVersion, "acknowledged version \(upload.clientVersion) goes back")
        try Self.require(upload.clientVersion <= newestClientVersion, "acknowledged version \(upload.clientVersion) was never sent")
        try Self.require(download.clientVersion <= upload.clientVersion, "client version \(download.clientVersion) beyond the upload")
        try Self.require(upload.serverVersion >= last.upload.serverVersion, "confirmed version \(upload.serverVersion) goes back")
        try Self.require(
            download.serverVersion >= upload.serverVersion, "confirmed version \(upload.serverVersion) beyond the download")
    }

    private static func require(_ holds: Bool, _ problem: @autoclosure () -> String) throws(SluiceError) {
        if !holds { throw defect("has wrong progress: \(problem())") }
    }

    private func checkEntries(_ download: RealmDownload) throws(SluiceError) {
        let header = download.progress.download
        var (server, client) = (max(cursor.serverVersion, 1), cursor.clientVersion)
        for entry in download.entries {
            guard entry.serverVersion >= server, entry.serverVersion <= header.serverVersion else {
                throw Self.defect("has an entry of version \(entry.serverVersion) outside of \(server)...\(header.serverVersion)")
            }
            guard entry.clientVersion >= client, entry.clientVersion <= header.clientVersion else {
                throw Self.defect("has an entry of client version \(entry.clientVersion) outside of \(client)...\(header.clientVersion)")
            }
            guard entry.origin > 0, entry.origin != file else { throw Self.defect("has an entry of origin \(entry.origin)") }
            (server, client) = (entry.serverVersion, entry.clientVersion)
        }
    }

    private static func defect(_ problem: String) -> SluiceError {
        SluiceError(
            .internalError, "A message for a client \(problem).",
            fix: "Report this defect. The client replaces its file and continues.")
    }
}
