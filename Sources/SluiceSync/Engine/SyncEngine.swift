package import SluiceCore
import SluiceReplica
import SluiceWire

/// The stage of a client reset, as reported to the app.
package enum ResetStep: Hashable, Sendable {
    case before, after
    /// Replaces `after`: the transaction failed. The engine retries the reset, beginning with `before`.
    case failed
}

/// Keeps one client replica in step with a gateway: performs the decisions of `SyncStateMachine` on a transport and the replica.
///
/// Call `run()` once. It does nothing before `start` and returns when its task is cancelled. All other methods are safe to call from any
/// thread. They return at once, except `wait`.
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
    ///   - refresh: fetches a new access token. An error that rejects the user (`invalidSession`, `userDisabled`, `badAuthentication`,
    ///     `userNotFound`, `invalidPassword`, `permissionDenied`) ends the engine as logged out. Any other error is retried.
    ///   - onReport: called on the engine's task, in order. It must not block. If it returns `false`, no observer received the report.
    ///     A `refused` report is then kept and repeated at the next sync of the replica.
    ///   - onReset: called on the engine's task, which waits for it, before and after a client reset changes the replica's content.
    ///     After a crash before the commit, both calls are repeated. After a crash between the commit and the second call, neither is.
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

    /// Starts, or restarts after `pause` or after a report that the engine has stopped.
    /// - Parameter token: an access token. `nil` uses the previous token, or calls `refresh` if the engine has none.
    package func start(token: String? = nil) { mailbox.post(.start(token: token)) }

    /// Closes the connection and stays offline until `start`. Does nothing if the engine has stopped.
    package func pause() { mailbox.post(.pause) }

    /// Reconnects now and resets the back-off. Does nothing before `start` and after `pause`.
    package func reconnect() { mailbox.post(.reconnect) }

    /// Replaces the access token by one that was refreshed for another reason.
    package func refreshed(token: String) { mailbox.post(.tokenRefreshed(token)) }

    /// Waits until the event has happened, also across reconnects and pauses.
    /// - Parameter milliseconds: the timeout. `nil` waits without limit: an offline app waits for its network.
    /// - Throws: `timeout`, the error that stopped the engine, `shuttingDown` when the engine ends, or `CancellationError`.
    package func wait(for kind: SyncWait, milliseconds: UInt64? = nil) async throws {
        let deadline = milliseconds.map { now + $0 }
        try await waiters.wait { id in
            mailbox.post(.wait(id, kind, deadline: deadline))
        } cancelled: { [mailbox] id in
            mailbox.post(.cancelWait(id))
        }
    }

    /// Milliseconds on the monotonic clock.
    var now: UInt64 { environment.monotonicNanoseconds() / 1_000_000 }

    /// Syncs until the task is cancelled.
    package func run() async {
        let observer = replica.onLocalChange { [mailbox] in mailbox.post(.localChange) }
        await reportEarlierCompensations()
        await withDiscardingTaskGroup { group in
            var loop = SyncLoop(engine: self)
            while let item = await mailbox.next() { await loop.take(item, in: &group) }
            loop.closeAll()
            group.cancelAll()
        }
        replica.removeObserver(observer)
        waiters.close(SluiceError(.shuttingDown, "The sync engine has been stopped."))
    }

    /// Reports the compensating writes that the app did not receive before it ended.
    private func reportEarlierCompensations() async {
        do throws(SluiceError) {
            let reports = try await replica.read { parts throws(SluiceError) in try parts.local.compensations.reports.all() }
            for report in reports { try await tell(report) }
        } catch {
            _ = onReport(.warning(error))
        }
    }

    /// Reports to the app, then records the delivery. A crash in between repeats the report.
    func tell(_ report: CompensationReport) async throws(SluiceError) {
        guard onReport(.refused(report.writes)) else { return }
        try await replica.commit(isDurable: false) { parts throws(SluiceError) in
            try parts.local.compensations.reports.forget(report.id)
        }
    }
}

// MARK: Connections

extension SyncEngine {
    /// Opens a connection and transfers messages until it ends.
    func connect(_ id: UInt64, _ request: SyncRequest, _ link: SyncLink) async {
        var failure: SluiceError?
        do throws(SluiceError) {
            let connection = try await transport.connect(request)
            if link.attach(connection) {
                // Posted before any message is read, so that the machine sees the connection before its first message.
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
            // The writer waits on the link: close it, or `written` never returns.
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
                // The reader sees the close as well and reports it.
                connection.close()
                return
            }
        }
    }

    /// Requests a token from the app.
    func fetchToken() async {
        do throws(SluiceError) {
            mailbox.post(.tokenRefreshed(try await refresh()))
        } catch {
            mailbox.post(.tokenFailed(error))
        }
    }
}

extension SyncConfiguration {
    /// Returns the request that opens a connection.
    /// - Parameter token: the access token of the session that follows.
    package func request(token: String?) -> SyncRequest {
        var headers = headers
        if let authorizationHeader, let token { headers[authorizationHeader] = "Bearer \(token)" }
        return SyncRequest(url: socketURL, headers: headers, milliseconds: timing.transport)
    }

    /// The WebSocket URL of the app's sync sessions.
    var socketURL: String {
        var base = Substring(url)
        while base.hasSuffix("/") { base = base.dropLast() }
        for (web, socket) in [("http://", "ws://"), ("https://", "wss://")] where base.prefix(web.count).lowercased() == web {
            base = socket + base.dropFirst(web.count)
        }
        return base + WireProtocol.path(app: app)
    }
}
