import SluiceCore
import SluiceValues
import SluiceWire
import SwiftProtobuf
import Testing

@Suite struct `An error in a message` {
    @Test(arguments: ErrorCode.allCases) func `has code, words and action`(code: ErrorCode) {
        let told = ClientError(SluiceError(code, "Something is wrong.", fix: "Mend it."))
        let message = PBSessionError(
            SluiceError(code, "Something is wrong.", fix: "Mend it."), action: .refreshUser, fatal: true, backoffMilliseconds: 70)
        #expect(message.error.code == told.code && message.error.message == told.message && message.error.fix == told.fix)
        #expect(message.sessionAction == .refreshUser && message.fatal && message.backoffMilliseconds == 70)
        let query = PBQueryError(version: 5, SluiceError(code, "Something is wrong."))
        #expect(query.version == 5 && query.error.code == ClientError(SluiceError(code, "Something is wrong.")).code)
        #expect(query.index == nil && PBQueryError(version: 5, SluiceError(code, "Something is wrong."), index: 3).index == 3)
    }

    /// A newer gateway may have codes and actions that this version does not know.
    @Test(arguments: [UInt32(9_999), .max]) func `of another version keeps its name and lets the client retry`(code: UInt32) {
        let message = PBSessionError.with {
            ($0.code, $0.name, $0.message, $0.action) = (code, "too-new", "It is new.", .UNRECOGNIZED(77))
        }
        #expect(message.error.code == .internalError && message.error.message == "too-new (\(code)): It is new.")
        #expect(message.sessionAction == .transient)
    }

    @Test func `about a write has the object and its values, unless they are too large`() throws {
        let object = ObjectKey(type: "T", key: .string("k"))
        var report = RejectedWriteReport(
            changeset: 3, object: object, error: SluiceError(.badChangeset, "No."), cause: .outsideView, fields: ["a"],
            values: ["a": .int(1), "b": .list([.string("x")])])
        #expect(try RejectedWriteReport(PBRejectedWrite(report)).values == report.values)
        #expect(try RejectedWriteReport(PBRejectedWrite(report)).cause == .outsideView)
        report.values["b"] = .string(String(repeating: "x", count: RejectedWriteReport.longestValues))
        let cut = try RejectedWriteReport(PBRejectedWrite(report))
        #expect(cut.values.isEmpty && cut.object == object && cut.fields == ["a"])
        var unknown = PBRejectedWrite(report)
        unknown.cause = "newer"
        #expect(try RejectedWriteReport(unknown).cause == nil)
        unknown.values = "{"
        #expect(throws: SluiceError.self) { try RejectedWriteReport(unknown) }
    }

    @Test func `names no key that is longer than its values may be`() {
        let long = ObjectKey(type: "T", key: .string(String(repeating: "k", count: RejectedWriteReport.longestValues)))
        #expect(PBReportedWrite(changeset: 1, long) == nil)
        let short = PBReportedWrite(changeset: 7, ObjectKey(type: "T", key: .int(4)))
        #expect(short?.changeset == 7 && short?.type == "T")
        let futile = PBFutileWrite(changeset: 8, ObjectKey(type: "T", key: .int(4)))
        #expect(futile.changeset == 8 && futile.type == "T" && futile.hasPrimaryKey)
    }
}
