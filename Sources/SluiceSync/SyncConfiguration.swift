/// Where and as what to sync.
package struct SyncConfiguration: Hashable, Sendable {
    /// The gateway: `ws://`, `wss://`, `http://` or `https://` with host and optionally port.
    package var url: String
    package var app: String
    /// Name and version of the SDK, for the gateway's log.
    package var sdk: String
    /// Added to the request that opens the connection.
    package var headers: [String: String]
    /// Stops at a client reset and leaves it to the app, instead of beginning the server's side anew.
    package var manualReset: Bool

    package init(
        url: String, app: String, sdk: String = "sluice-swift/1", headers: [String: String] = [:], manualReset: Bool = false
    ) {
        self.url = url
        self.app = app
        self.sdk = sdk
        self.headers = headers
        self.manualReset = manualReset
    }
}
