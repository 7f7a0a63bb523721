import SluiceIdentity
import SluicePorts
import SluiceValues
import Testing

@Suite struct `An authentication trigger` {
    private static func event(_ kind: UserEvent.Kind, by provider: String = "anon-user") -> UserEvent {
        UserEvent(
            id: 7, kind: kind, account: UserAccount(id: "u1", provider: "anon-user", data: ["a": 1]), provider: provider,
            milliseconds: 1_700_000_000_000)
    }

    @Test func `is for the events of its operation and providers`() {
        let kinds: [(AuthenticationTrigger.Operation, UserEvent.Kind)] = [(.create, .created), (.login, .loggedIn), (.delete, .deleted)]
        for (operation, matching) in kinds {
            let trigger = AuthenticationTrigger("t", operation, function: "f")
            for kind in UserEvent.Kind.allCases { #expect(trigger.matches(Self.event(kind)) == (kind == matching)) }
        }
        let some = AuthenticationTrigger("t", .login, providers: ["api-key", "local-userpass"], function: "f")
        #expect(some.matches(Self.event(.loggedIn, by: "api-key")))
        #expect(!some.matches(Self.event(.loggedIn, by: "anon-user")))
    }

    @Test func `calls its function with App Services' event, under one id for all attempts`() {
        let event = Self.event(.loggedIn, by: "api-key")
        let user = UserContext(id: "u1", data: ["a": 1])
        let call = AuthenticationTrigger("t", .login, function: "f").call(for: event, user: user)
        #expect(call.name == "f" && call.caller == .system && call.id == "user-event-7-t")
        #expect(
            call.arguments == [
                [
                    "operationType": "LOGIN", "providers": ["api-key"], "user": user.json,
                    "time": ["$date": "2023-11-14T22:13:20Z"],
                ]
            ])
    }

    @Test func `is attempted a bounded number of times, with growing waits`() {
        let waits = (1..<TriggerRetries.attempts).map { TriggerRetries.wait(failed: $0) }
        #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
        #expect(TriggerRetries.wait(failed: TriggerRetries.attempts) == nil)
    }
}
