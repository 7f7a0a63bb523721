import SluiceCore
import Testing

@testable import SluicePipeline

@Suite struct `A session's state` {
    private func open() throws -> SessionState {
        var state = SessionState()
        try state.receive(.hello)
        return state
    }

    @Test(arguments: SessionState.Message.allCases)
    func `takes only hello first, or a token`(message: SessionState.Message) {
        var state = SessionState()
        if message == .hello || message == .refreshToken {
            #expect(throws: Never.self) { try state.receive(message) }
        } else {
            #expect(performing: { try state.receive(message) }, throws: { ($0 as? SluiceError)?.code == .badMessageOrder })
        }
    }

    @Test(arguments: SessionState.Message.allCases)
    func `takes anything but hello once it is open`(message: SessionState.Message) throws {
        var state = try open()
        if message == .hello {
            #expect(performing: { try state.receive(message) }, throws: { ($0 as? SluiceError)?.code == .badMessageOrder })
        } else {
            #expect(throws: Never.self) { try state.receive(message) }
        }
    }

    @Test(arguments: SessionState.Message.allCases)
    func `takes only hello behind a token`(message: SessionState.Message) throws {
        var state = SessionState()
        try state.receive(.refreshToken)
        if message == .hello {
            #expect(throws: Never.self) { try state.receive(message) }
        } else {
            #expect(performing: { try state.receive(message) }, throws: { ($0 as? SluiceError)?.code == .badMessageOrder })
        }
    }

    @Test(arguments: SessionState.Message.allCases)
    func `takes nothing after the end`(message: SessionState.Message) throws {
        var state = try open()
        state.close()
        #expect(performing: { try state.receive(message) }, throws: { ($0 as? SluiceError)?.code == .badMessageOrder })
    }

    @Test func `refuses a subscription version that does not grow`() throws {
        var state = try open()
        try state.request(2)
        #expect(throws: SluiceError.self) { try state.request(2) }
        #expect(throws: SluiceError.self) { try state.request(1) }
        try state.request(3)
        let error = #expect(throws: SluiceError.self) { try state.request(1 << 63) }
        #expect(error?.code == .badSyntax)
        try state.request(1 << 63 - 1)
    }

    @Test func `an older version is live until the newest one is`() throws {
        var state = try open()
        try state.request(1)
        try state.request(2)
        state.complete(1)
        #expect(state.active == 1)
        state.complete(2)
        #expect(state.active == 2)
        state.close()
        state.complete(3)
        #expect(state.active == 2)
    }

    @Test func `recognises a changeset that is sent again and one that is missing`() throws {
        var state = try open()
        state.begin(changeset: 4)
        let again = try state.take(changeset: 4)
        let next = try state.take(changeset: 5)
        #expect(!again)
        #expect(next)
        #expect(performing: { try state.take(changeset: 7) }, throws: { ($0 as? SluiceError)?.code == .badClientFile })
    }
}
