import SluiceCore
import Testing

@Suite struct `The causes of an error` {
    private struct Odd: Error, CustomStringConvertible { var description: String { "an odd reason" } }

    private struct AreaError: SluiceErrorConvertible {
        var asSluiceError: SluiceError { SluiceError(.slotBusy, "The slot is in use.") }
    }

    @Test func `are listed for operators from the outermost to the first, with their codes`() {
        let first = SluiceError(.postgresStatement, "A statement failed.", cause: .postgres(sqlState: "23505", text: "duplicate key"))
        let error = SluiceError(.resync, "The view cannot be rebuilt.", value: "size > 1", cause: .error(first))
        #expect(
            error.operatorText == """
                The view cannot be rebuilt. Value: size > 1. Cause: postgres-statement (601): A statement failed. \
                Cause: PostgreSQL: duplicate key (SQLSTATE 23505)
                """)
        #expect(error.description == "resync (251): \(error.operatorText). \(ErrorCode.resync.fix)", "the fix is a sentence of its own")
        #expect(
            SluiceError(.logTopic, "No topic.", cause: .kafka(code: -188, text: "unknown")).operatorText.hasSuffix(
                "Kafka: unknown (error -188)"))
        #expect(
            SluiceError(.timeout, "Late.", cause: .sqlite(code: 5, text: "database is locked")).operatorText
                == "Late. Cause: SQLite: database is locked (error 5)")
        #expect(
            SluiceError(.pluginUnavailable, "no thread", cause: .system(errno: 11, text: "busy")).operatorText
                == "no thread. Cause: busy (errno 11)")
        #expect(SluiceError(.pluginCrashed, "p ended", cause: .plugin("signal 11")).operatorText == "p ended. Cause: signal 11")
        #expect(SluiceError(.timeout, "Late.").operatorText == "Late.")
    }

    @Test func `are the error itself, that of an area, or the text of any other`() {
        let own = SluiceError(.timeout, "Late.")
        #expect(SluiceError(own, otherwise: .internalError, "A bootstrap failed.") == own)
        #expect(SluiceError(AreaError(), otherwise: .internalError, "A bootstrap failed.").code == .slotBusy)
        let other = SluiceError(Odd(), otherwise: .internalError, "A bootstrap failed.")
        #expect(other == SluiceError(.internalError, "A bootstrap failed.", cause: .text("an odd reason")))
        #expect(ErrorCause(AreaError()) == .error(AreaError().asSluiceError) && ErrorCause(Odd()) == .text("an odd reason"))
    }

    @Test(arguments: ErrorCode.allCases) func `and the value are not for clients`(code: ErrorCode) {
        let error = SluiceError(code, "Clean.", value: "ZQ", cause: .error(SluiceError(.badRequest, "ZQ", cause: .text("ZQ"))))
        let client = ClientError(error)
        #expect(!client.message.contains("ZQ") && !client.fix.contains("ZQ"))
        #expect(error.isWithheld)
    }

    @Test func `of PostgreSQL are temporary by their class`() {
        for state in ["40001", "40P01", "08006", "53300", "57P01", "55P03"] { #expect(ErrorRecovery(sqlState: state) == .wait, "\(state)") }
        for state in ["23505", "57014", "55000", "XX000", "P0001", ""] { #expect(ErrorRecovery(sqlState: state) == nil, "\(state)") }
    }
}
