package import SluiceCore
import SluiceReplica
import SluiceWire

/// Where a client reset is.
package enum ResetStep: Hashable, Sendable {
    case before, after
    /// In place of `after`: the file could not be changed; both are tried again.
    case failed
}

/// Keeps one file in step with a gateway: performs what `SyncStateMachine` decides on a transport and the file.
///
/// Run it once: `run()` returns when its task is cancelled. It does nothing before `start`. Every other call may be made
/// from anywhere and returns at once.
package final class SyncEngine: Sendable {
    let configuration: SyncConfiguration
    let replica: any SyncReplica
    let transport: any SyncTransport
    let environment: any Environment
    let refresh: @Sendable () async throws(SluiceError) -> String
    let onReport: @Sendable (SyncReport) -> Bool
    let onReset: @Sendable (ResetStep) -> Void
    let mailbox = Mailbox()
    let waiters = SyncWaiters()

    /// - Parameters:
    ///   - refresh: fetches a new access token. `invalidSession`, `userDisabled` and `badAuthentication` end the engine as
    ///     logged out; any other error is tried again later.
    ///   - onReport: called on the engine's task, in order; it must not block. False: nobody has heard of it. A refusal is kept then, and
    ///     told when the file is synced the next time.
    ///   - onReset: called on the engine's task, which waits for it: before a client reset changes what the file shows, and after. A
    ///     crash before the file has the change brings both again; after one that comes later, before the second call, neither comes.
    package init(
        configuration: SyncConfiguration, replica: any SyncReplica, transport: any SyncTransport = WebSocketTransport(),
        environment: any Environment = SystemEnvironment(),
        refresh: @escaping @Sendable () async throws(SluiceError) -> String,
        onReport: @escaping @Sendable (SyncReport) -> Bool,
        onReset: @escaping @Sendable (ResetStep) -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.replica = replica
        self.transport = transport
        self.environment = environment
        self.refresh = refresh
        self.onReport = onReport
        self.onReset = onReset
    }

    /// Begins, or begins again after `pause` or a report that it has stopped.
    /// - Parameter token: an access token; nil asks `refresh` first.
    package func start(token: String? = nil) { mailbox.post(.start(token: token)) }

    /// Closes the connection and stays off the network until `start`.
    package func pause() { mailbox.post(.pause) }

    /// Tries to connect now, whatever the back-off says.
    package func reconnect() { mailbox.post(.reconnect) }

    /// Hands over a token that was refreshed for another reason.
    package func refreshed(token: String) { mailbox.post(.tokenRefreshed(token)) }

    /// Waits until the event has happened, also across reconnects and pauses.
    /// - Parameter milliseconds: nil waits as long as it takes: an app that is offline waits for its network.
    /// - Throws: `timeout`; the error that stopped the engine; `CancellationError`.
    package func wait(for kind: SyncWait, milliseconds: UInt64? = nil) async throws {
        let deadline = milliseconds.map { now + $0 }
        try await waiters.wait { id in
            mailbox.post(.wait(id, kind, deadline: deadline))
        } cancelled: { [mailbox] id in
            mailbox.post(.cancelWait(id))
        }
    }

    /// Milliseconds on the machine's clock.
    var now: UInt64 { environment.monotonicNanoseconds() / 1_000_000 }

    /// Syncs until the task is cancelled.
    package func run() async {
        let observer = replica.onLocalChange { [mailbox] in mailbox.post(.localChange) }
        await reportOldRefusals()
        await withDiscardingTaskGroup { group in
            var loop = SyncLoop(engine: self)
            while let item = await mailbox.next() { await loop.take(item, in: &group) }
            loop.closeAll()
            group.cancelAll()
        }
        replica.removeObserver(observer)
        waiters.close(SluiceError(.shuttingDown, "The sync engine has been stopped."))
    }

    /// What the app was not told before it ended.
    private func reportOldRefusals() async {
        do throws(SluiceError) {
            for refusal in try await replica.unreportedRefusals() { try await tell(refusal) }
        } catch {
            _ = onReport(.warning(error))
        }
    }

    /// Tells the app, then notes that it knows.
    func tell(_ refusal: WriteRefusal) async throws(SluiceError) {
        if onReport(.refused(refusal.writes)) { try await replica.reported(refusal.id) }
    }
}

// MARK: Connections

extension SyncEngine {
    /// Makes a connection and moves messages until it ends.
    func connect(_ id: UInt64, _ request: SyncRequest, _ link: SyncLink) async {
        var failure: SluiceError?
        do throws(SluiceError) {
            let connection = try await transport.connect(request)
            if link.attach(connection) {
                mailbox.post(.connected(id))
                failure = await move(connection, id, link)
            }
            connection.close()
        } catch {
            failure = error
        }
        link.close()
        mailbox.post(.disconnected(id, failure))
    }

    private func move(_ connection: any SyncConnection, _ id: UInt64, _ link: SyncLink) async -> SluiceError? {
        await withTaskCancellationHandler {
            async let written: Void = write(connection, link)
            let failure = await read(connection, id)
            link.close()
            await written
            return failure
        } onCancel: {
            link.close()
        }
    }

    private func read(_ connection: any SyncConnection, _ id: UInt64) async -> SluiceError? {
        do throws(SluiceError) {
            while let inbound = try await connection.next() {
                switch inbound {
                case .message(let message): await mailbox.deliver(message, of: id)
                case .pong: mailbox.post(.traffic(id))
                }
            }
            return nil
        } catch {
            return error
        }
    }

    private func write(_ connection: any SyncConnection, _ link: SyncLink) async {
        while let message = await link.nextOutgoing() {
            do throws(SluiceError) {
                try await connection.send(message)
            } catch {
                // The reader sees the end as well, and reports it.
                connection.close()
                return
            }
        }
    }

    /// Asks the app for a token.
    func fetchToken() async {
        do throws(SluiceError) {
            mailbox.post(.tokenRefreshed(try await refresh()))
        } catch {
            mailbox.post(.tokenFailed(error))
        }
    }
}

extension SyncConfiguration {
    /// What opens a connection.
    /// - Parameter token: the access token that the session will begin with.
    package func request(token: String?) -> SyncRequest {
        var headers = headers
        if let authorizationHeader, let token { headers[authorizationHeader] = "Bearer \(token)" }
        return SyncRequest(url: socketURL, headers: headers, milliseconds: timing.transport)
    }

    /// The address of the app's sync sessions.
    var socketURL: String {
        var base = Substring(url)
        while base.hasSuffix("/") { base = base.dropLast() }
        for (web, socket) in [("http://", "ws://"), ("https://", "wss://")] where base.hasPrefix(web) {
            base = socket + base.dropFirst(web.count)
        }
        return base + WireProtocol.path(app: app)
    }
}
