import ArgumentParser
import SluiceCore
import SluiceTools
import SluiceValues

struct IngestReplay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay", abstract: "Send rejected asymmetric objects again, or list them.",
        discussion: """
            Asks a gateway's admin port. An object that is taken leaves sluice.ingest_rejected; one that is refused by the rules again comes \
            back there with a new id. Those that cannot be sent are printed on standard error with their ids; the exit code is then 3.
            """)

    @OptionGroup var target: AdminTarget

    @Option(help: "Only objects of this class.")
    var type: String?

    @Option(help: "Only objects rejected with this code.")
    var code: Int?

    @Option(help: "Only the object with this id. May be repeated.")
    var id: [Int] = []

    @Flag(help: "Print the objects as NDJSON and send nothing.")
    var list = false

    func run() async throws {
        try await reporting {
            let replay = IngestReplayer(type: type, code: code, ids: id, client: try target.client())
            if list { return try await replay.list { print($0.text) } }
            let (sent, refused) = try await replay.send()
            StandardError.write("\(sent) sent again, \(refused) refused\n")
            if refused > 0 { throw ExitCode(3) }
        }
    }
}
