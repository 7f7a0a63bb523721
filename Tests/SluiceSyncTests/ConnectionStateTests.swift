import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceWire
import Testing

@Suite struct ConnectionStateTests {
    @Test func `a start connects, loads the file, says Hello, and is open with Welcome`() {
        var harness = MachineHarness()
        #expect(harness.feed(.start(token: "t")).count == 2)
        #expect(harness.hasConnected && harness.reports == [.connection(.connecting)])
        harness.feed(.connected(1))
        let state = LocalState(
            identity: ReplicaIdentity(client: ClientID(rawValue: 3), secret: [9]),
            applied: AppliedPosition(lsn: LSN(rawValue: 77), version: 4))
        harness.feed(.loaded(1, state))
        guard case .hello(let hello)? = harness.sent.first else {
            Issue.record("no Hello")
            return
        }
        #expect(hello.accessToken == "t" && hello.client == 3 && Array(hello.secret) == [9])
        #expect(hello.appliedLsn == 77 && hello.appliedVersion == 4 && hello.schema.count == 2 && hello.protocol == 1)
        harness.receive(.welcome(MachineHarness.welcome()))
        #expect(harness.machine.phase == .open)
        #expect(harness.reports == [.connection(.connected)])
        #expect(harness.actions.contains { if case .setIdentity(let identity) = $0 { identity.client.rawValue == 7 } else { false } })
    }

    @Test func `a start after an end is told, so that a late end is not taken for the last word`() {
        var harness = MachineHarness()
        harness.feed(.start(token: "t"))
        #expect(harness.reports == [.connection(.connecting)])
        harness.feed(.start(token: "t"))
        #expect(harness.reports.isEmpty)
        harness.open()
        let error = SluiceError(.badAuthentication, "revoked")
        harness.receive(.error(error, SluiceWireAction.applicationBug.action, fatal: true, backoffMilliseconds: 0))
        #expect(harness.reports == [.stopped(error), .connection(.disconnected)])
        harness.feed(.start(token: "t"))
        #expect(harness.reports == [.resumed, .connection(.connecting)])
    }

    @Test func `without a token one is fetched first, and it is used`() {
        var harness = MachineHarness()
        harness.feed(.start(token: nil))
        #expect(harness.asksForToken && !harness.hasConnected)
        harness.feed(.tokenRefreshed("fresh"))
        #expect(harness.hasConnected)
    }

    @Test func `failures are waited for from one second up to five minutes, and the first one again after a success`() {
        var harness = MachineHarness()
        harness.feed(.start(token: "t"))
        var waits: [UInt64] = []
        for _ in 0..<11 {
            harness.feed(.disconnected(harness.connection, nil))
            waits.append(harness.waiting ?? 0)
            harness.feed(.tick, after: harness.waiting ?? 0)
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map { $0 * 1_000 })
        harness.open()
        harness.pending([set(0, [])])
        harness.receive(.commits(ReplicaBatch(), more: false))
        harness.feed(.disconnected(harness.connection, nil))
        #expect(harness.waiting == 1_000)
    }

    @Test func `Scenario 61: what could not be read is told to the gateway in the next session, once`() {
        var harness = MachineHarness.settled()
        harness.feed(.unreadable(harness.connection, SluiceError(.badSyntax, "A message of 3 bytes cannot be read.")))
        #expect(harness.sent.isEmpty && harness.waiting != nil)
        for expected in [[UInt32(ErrorCode.badSyntax.rawValue)], []] {
            harness.feed(.tick, after: 10_000)
            harness.open()
            let reports = harness.sent.compactMap { if case .reportError(let report) = $0 { report } else { nil } }
            #expect(reports.map(\.code) == expected && reports.allSatisfy { $0.message == "A message of 3 bytes cannot be read." })
            // What the network does is nobody's fault.
            harness.feed(.disconnected(harness.connection, SluiceError(.connectionFailed, "gone")))
        }
    }

    /// The gateway said so while the file was read, and the client took it for a message in the wrong place.
    @Test func `a gateway that ends before Hello is left with its back-off, and nothing is told as a fault`() {
        var harness = MachineHarness()
        harness.feed(.start(token: "t"))
        harness.feed(.connected(1))
        let error = SluiceError(.shuttingDown, "The gateway is shutting down.")
        harness.receive(.error(error, .transient, fatal: true, backoffMilliseconds: 4_000))
        #expect(harness.waiting == 4_000)
        #expect(harness.reports.contains(.interrupted(error, isFault: false)))
        harness.feed(.loaded(1, LocalState()))
        #expect(harness.sent.isEmpty)
        harness.feed(.tick, after: 4_000)
        harness.open()
        #expect(harness.machine.phase == .open)
        #expect(!harness.sent.contains { if case .reportError = $0 { true } else { false } })
    }

    @Test func `a Welcome alone does not count as a success`() {
        var harness = MachineHarness()
        harness.feed(.start(token: "t"))
        for expected: UInt64 in [1_000, 2_000, 4_000] {
            harness.open()
            harness.receive(.error(SluiceError(.internalError, "down"), .transient, fatal: true, backoffMilliseconds: 0))
            #expect(harness.waiting == expected)
            harness.feed(.tick, after: expected)
        }
    }

    @Test func `the jitter covers the whole delay, of which a quarter of a second remains`() {
        for failures in [0, 1, 3, 20] {
            let longest = min(1_000 << UInt64(min(failures, 20)), 300_000) as UInt64
            let delays = (UInt64(0)..<1_000).map { number in
                var backoff = Backoff()
                for _ in 0..<failures { _ = backoff.next(random: 0) }
                return backoff.next(random: number &* 0x9E37_79B9_7F4A_7C15)
            }
            #expect(delays.allSatisfy { (250...longest).contains($0) })
            let tenths = Dictionary(grouping: delays) { ($0 - 250) * 10 / (longest - 249) }
            #expect((UInt64(0)..<10).allSatisfy { (70...130).contains(tenths[$0]?.count ?? 0) }, "\(tenths.mapValues(\.count))")
        }
    }

    @Test func `Scenario 60: a gateway that goes away is left with a back-off, and no error is shown`() {
        var harness = MachineHarness.settled()
        // The end of the connection after a close frame with 1001.
        harness.feed(.disconnected(harness.connection, nil))
        #expect(harness.waiting == Backoff.firstMilliseconds)
        #expect(harness.actions.allSatisfy { if case .report(.interrupted(_, isFault: true)) = $0 { false } else { true } })
    }

    @Test func `Scenario 60: the gateway's own back-off counts when it is longer`() {
        var harness = MachineHarness.settled()
        harness.receive(.error(SluiceError(.shuttingDown, "deploy"), .transient, fatal: true, backoffMilliseconds: 9_000))
        #expect(harness.waiting == 9_000 && harness.hasClosed)
    }

    @Test func `inputs of an older connection are ignored, and a late one is closed`() {
        var harness = MachineHarness.settled()
        harness.feed(.disconnected(harness.connection, nil))
        harness.feed(.reconnect)
        let current = harness.connection
        for input: SyncInput in [
            .disconnected(current - 1, nil), .received(current - 1, .markReached(1)), .traffic(current - 1),
            .unreadable(current - 1, .malformed("x")), .loaded(current - 1, LocalState()),
            .pending(current - 1, LocalPending(sets: [set(0, [])])),
        ] {
            #expect(harness.feed(input).isEmpty)
        }
        harness.feed(.connected(current - 1))
        #expect(harness.hasClosed)
        guard case .connecting = harness.machine.phase else {
            Issue.record("\(harness.machine.phase)")
            return
        }
    }

    @Test func `silence is tested by pings and ends the connection after a minute`() {
        var harness = MachineHarness.settled()
        #expect(harness.machine.nextDeadline == harness.now + 30_000)
        harness.feed(.tick, after: 30_000)
        #expect(harness.actions.contains { if case .ping = $0 { true } else { false } })
        harness.feed(.traffic(harness.connection), after: 1_000)
        harness.feed(.tick, after: 30_000)
        #expect(harness.machine.phase == .open)
        harness.feed(.tick, after: 30_000)
        #expect(harness.waiting != nil && harness.hasClosed)
    }

    @Test(arguments: [SyncTiming(), SyncTiming(connect: 900)])
    func `an answer that does not come in two minutes, or in the time that is given, ends the attempt`(timing: SyncTiming) {
        var harness = MachineHarness(timing: timing)
        harness.feed(.start(token: "t"))
        harness.feed(.connected(1), after: timing.connect / 3)
        harness.feed(.loaded(1, LocalState()), after: timing.connect / 3)
        #expect(harness.machine.nextDeadline == harness.now + timing.connect / 3)
        harness.feed(.tick, after: timing.connect / 3)
        #expect(harness.waiting == 1_000)
        guard case .interrupted(let error, false)? = harness.reports.first else {
            Issue.record("\(harness.reports)")
            return
        }
        #expect(error.code == .timeout && error.message.contains("\(timing.connect) ms"))
    }

    @Test func `pings go out, and are waited for, as long as the app says`() {
        var harness = MachineHarness(timing: SyncTiming(ping: 1_000, pong: 2_000))
        harness.open()
        #expect(harness.machine.nextDeadline == harness.now + 1_000)
        for _ in 1...2 {
            harness.feed(.tick, after: 1_000)
            #expect(harness.actions.contains { if case .ping = $0 { true } else { false } })
        }
        harness.feed(.tick, after: 999)
        #expect(harness.machine.phase == .open)
        harness.feed(.tick, after: 1)
        #expect(harness.waiting != nil && harness.hasClosed)
    }

    @Test func `a handshake that fails is a fault, and is tried again`() {
        var harness = MachineHarness()
        harness.feed(.start(token: "t"))
        let error = SluiceError(.tlsHandshakeFailed, "unknown certificate")
        harness.feed(.disconnected(harness.connection, error))
        #expect(harness.reports.contains(.interrupted(error, isFault: true)) && harness.waiting == 1_000)
    }

    @Test func `the request that opens a connection carries the token where a header is named for it`() {
        var configuration = SyncConfiguration(url: "https://gateway", app: "app", headers: ["X-Tenant": "blue"])
        #expect(configuration.request(token: "t").headers == ["X-Tenant": "blue"])
        configuration.authorizationHeader = "X-Auth"
        configuration.timing.transport = 70
        let request = configuration.request(token: "t")
        #expect(request.headers == ["X-Tenant": "blue", "X-Auth": "Bearer t"] && request.milliseconds == 70)
        #expect(request.url.hasPrefix("wss://gateway/") && configuration.request(token: nil).headers["X-Auth"] == nil)
        configuration.url = "HTTPS://gateway"
        #expect(configuration.request(token: nil).url.hasPrefix("wss://gateway/"))
    }

    @Test func `a pause closes and stays, a start comes back`() {
        var harness = MachineHarness.settled()
        harness.feed(.pause)
        #expect(harness.hasClosed && harness.machine.phase == .idle && harness.machine.nextDeadline == nil)
        for input: SyncInput in [.reconnect, .localChange, .tick, .tokenRefreshed("t2")] { #expect(harness.feed(input).isEmpty) }
        harness.feed(.start(token: nil))
        #expect(harness.hasConnected)
    }

    // MARK: Session errors

    @Test func `an expired token is refreshed and tried at once, a second refusal waits`() {
        var harness = MachineHarness.settled()
        let expired = ServerMessage.error(SluiceError(.tokenExpired, "old"), .refreshUser, fatal: true, backoffMilliseconds: 0)
        harness.receive(expired)
        #expect(harness.hasClosed && harness.asksForToken)
        harness.feed(.tokenRefreshed("fresh"))
        #expect(harness.hasConnected)
        harness.feed(.connected(harness.connection))
        harness.feed(.loaded(harness.connection, LocalState()))
        harness.receive(expired)
        #expect(!harness.asksForToken && harness.waiting == 1_000)
        harness.feed(.tick, after: 1_000)
        #expect(harness.asksForToken)
    }

    @Test func `a refresh that fails for the network is tried again, one that is refused logs out`() {
        var harness = MachineHarness()
        harness.feed(.start(token: nil))
        harness.feed(.tokenFailed(SluiceError(.connectionFailed, "offline")))
        #expect(harness.waiting == 1_000)
        harness.feed(.tick, after: 1_000)
        let refused = SluiceError(.invalidSession, "revoked")
        harness.feed(.tokenFailed(refused))
        #expect(harness.machine.phase == .ended(refused) && harness.reports.contains(.loggedOut(refused)))
        harness.feed(.start(token: "after login"))
        #expect(harness.hasConnected)
    }

    @Test func `a user who is logged out starts again with a new token, not with the rejected one`() {
        var harness = MachineHarness.settled()
        let error = SluiceError(.invalidSession, "revoked")
        harness.receive(.error(error, .logOutUser, fatal: true, backoffMilliseconds: 0))
        #expect(harness.machine.phase == .ended(error) && harness.reports.contains(.loggedOut(error)))
        harness.feed(.start(token: nil))
        #expect(harness.asksForToken && !harness.hasConnected)
        harness.feed(.tokenRefreshed("fresh"))
        harness.feed(.connected(harness.connection))
        harness.feed(.loaded(harness.connection, LocalState()))
        guard case .hello(let hello)? = harness.sent.first else {
            Issue.record("no Hello")
            return
        }
        #expect(hello.accessToken == "fresh")
    }

    @Test(arguments: [SluiceWireAction.logOutUser, .applicationBug, .clientResetManual])
    func `errors that end the session stop the engine and every wait`(action: SluiceWireAction) {
        var harness = MachineHarness(reset: action == .clientResetManual ? .manual : .recover)
        harness.open()
        harness.pending([set(0, [])])
        harness.feed(.wait(1, .upload, deadline: nil))
        let error = SluiceError(.userDisabled, "gone")
        harness.receive(.error(error, action.action, fatal: true, backoffMilliseconds: 0))
        #expect(harness.machine.phase == .ended(error) && harness.hasClosed)
        #expect(harness.finished == [1: error])
        let reports: [SyncReport] = [.loggedOut(error), .stopped(error), .clientReset(error)]
        #expect(harness.reports.contains { reports.contains($0) })
        harness.feed(.wait(2, .download, deadline: nil))
        #expect(harness.finished == [2: error])
        #expect(harness.machine.nextDeadline == nil)
    }

    @Test func `a client reset begins the server's side anew and comes back`() {
        var harness = MachineHarness.settled()
        let error = SluiceError(.badClientFile, "unknown")
        harness.receive(.error(error, .clientReset, fatal: true, backoffMilliseconds: 0))
        #expect(harness.actions.contains { if case .forgetServer = $0 { true } else { false } })
        #expect(harness.reports == [.resetting(error), .connection(.disconnected)] && harness.waiting == 1_000)
    }

    @Test(arguments: [ResetMode.manual, .discard, .recover, .recoverOrDiscard], [true, false])
    func `a client reset goes by the mode, and by what the gateway allows`(mode: ResetMode, isRecoveryAllowed: Bool) {
        var harness = MachineHarness(reset: mode)
        harness.open()
        harness.pending([set(0, [])])
        let error = SluiceError(.badClientFile, "unknown")
        harness.receive(.error(error, isRecoveryAllowed ? .clientReset : .clientResetNoRecovery, fatal: true, backoffMilliseconds: 0))
        let expected: ReplicaReset? =
            switch mode {
            case .manual: nil
            case .discard: .discard
            case .recover: isRecoveryAllowed ? .recover : nil
            case .recoverOrDiscard: isRecoveryAllowed ? .recover : .discard
            }
        #expect(harness.forgotten == expected)
        guard expected == nil, case .ended(let end) = harness.machine.phase else {
            #expect(expected != nil && harness.waiting != nil)
            return
        }
        #expect(end.code == .badClientFile && harness.reports.contains(.clientReset(end)))
        #expect(end.message.contains("does not allow to recover") == (mode == .recover))
    }

    @Test func `nothing of another user's file is sent, not even that it is there`() {
        for (mode, expected) in [(ResetMode.discard, ReplicaReset.disown), (.recoverOrDiscard, .disown), (.recover, nil), (.manual, nil)] {
            var harness = MachineHarness(reset: mode)
            harness.feed(.start(token: "t"))
            harness.feed(.connected(harness.connection))
            harness.feed(.loaded(harness.connection, LocalState(firstUnacknowledged: 1, isForeign: true)))
            #expect(!harness.actions.contains { if case .send = $0 { true } else { false } })
            #expect(harness.forgotten == expected)
            if case .ended(let end) = harness.machine.phase {
                #expect(expected == nil && end.code == .userMismatch)
            } else {
                #expect(expected != nil && harness.waiting != nil)
            }
        }
    }

    @Test func `after three client resets in a row that did not succeed the app decides`() {
        let error = SluiceError(.badClientFile, "unknown")
        for before in 0...4 as ClosedRange<UInt64> {
            var harness = MachineHarness(reset: .recoverOrDiscard)
            harness.open(LocalState(resets: ResetProgress(begun: before)))
            harness.pending([set(0, [])])
            harness.receive(.error(error, .clientReset, fatal: true, backoffMilliseconds: 0))
            #expect(harness.forgotten == (before < 3 ? .recover : nil))
            guard before >= 3, case .ended(let end) = harness.machine.phase else { continue }
            #expect(harness.reports.contains(.clientReset(end)))
            #expect(
                end.message.hasSuffix("The last \(before) client resets did not succeed; giving up on 'recover' mode to prevent a cycle."))
        }
    }

    @Test func `a warning is told and changes nothing`() {
        var harness = MachineHarness.settled()
        let error = SluiceError(.writeNotAllowed, "skipped")
        harness.receive(.error(error, .warning, fatal: false, backoffMilliseconds: 0))
        #expect(harness.reports == [.warning(error)] && harness.machine.phase == .open)
    }

    @Test func `a file that cannot be written to ends the session, a damaged one the engine`() {
        var harness = MachineHarness.settled()
        harness.feed(.replicaFailed(SluiceError(.internalError, "disk full")))
        #expect(harness.waiting == 10_000 && harness.hasClosed)
        let damaged = SluiceError(.replicaCorrupt, "damaged")
        harness.feed(.replicaFailed(damaged))
        #expect(harness.machine.phase == .ended(damaged))
    }

    /// A device whose clock is behind must not lose what it writes over what it has seen.
    @Test func `the clock is ahead of all writes that a bootstrap can have, before its rows are shown`() {
        var harness = MachineHarness()
        harness.open()
        harness.pending([set(1, ["north"])])
        harness.receive(.bootstrapBegin(version: 1, rows: 0))
        let time = HybridTime(milliseconds: 180_000, counter: 9)
        harness.receive(.bootstrapEnd(version: 1, lsn: LSN(rawValue: 70), types: [0], writeTime: time))
        let observed = harness.actions.firstIndex { if case .observe(180_001) = $0 { true } else { false } }
        let ended = harness.actions.firstIndex { if case .endBootstrap = $0 { true } else { false } }
        #expect(observed.map { $0 < ended ?? -1 } == true, "\(harness.actions)")
    }

    @Test func `messages before Welcome, a second Welcome, and what was not asked for break the session`() {
        var harness = MachineHarness()
        harness.feed(.start(token: "t"))
        harness.feed(.connected(1))
        harness.feed(.loaded(1, LocalState()))
        harness.receive(.markReached(1))
        #expect(harness.waiting != nil)
        for message: ServerMessage in [
            .welcome(MachineHarness.welcome()), .bootstrapRows(nil), .bootstrapEnd(version: 1, lsn: .zero, types: []),
            .bootstrapBegin(version: 0, rows: 0), .bootstrapBegin(version: 2, rows: 0), .markReached(7),
        ] {
            harness = .settled()
            harness.receive(message)
            #expect(harness.waiting != nil && harness.hasClosed, "\(message)")
        }
        // The gateway may bring what the view has anew, and not what it has refused.
        harness = .settled()
        harness.receive(.bootstrapBegin(version: 1, rows: 0))
        #expect(harness.waiting == nil)
        harness = .settled()
        harness.feed(.localChange)
        harness.pending([set(1, ["north"], state: .complete), set(2, ["bad"])])
        harness.receive(.queryError(version: 2, SluiceError(.querySyntax, "bad")))
        harness.receive(.bootstrapBegin(version: 2, rows: 0))
        #expect(harness.waiting != nil)
    }
}

/// The actions that stop the engine.
enum SluiceWireAction: CaseIterable {
    case logOutUser, applicationBug, clientResetManual
}
