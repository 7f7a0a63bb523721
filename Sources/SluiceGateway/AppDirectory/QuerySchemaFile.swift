import FoundationEssentials
package import SluiceCore
import SluiceValues

/// The schema of `sluice query`: an app directory, or one file
/// `{"schemas": […], "relationships": {Class: {field: {"ref": …, "foreign_key": …, "is_list": …}}}}`.
///
/// Schemas and relationships have the form of an app directory. A class without `_id` is embedded. A `ref` names a class, or a collection
/// as in an app directory (`LinkTargets`). `"asymmetric_tables": [Class]` is the key of `sync/config.json`.
package enum QuerySchemaFile {
    /// - Returns: The schema, and the queryable fields of an app directory; nil for a file, which names none.
    /// - Throws: All problems with their positions.
    package static func load(at path: String) throws(AppDirectoryError) -> (schema: Schema, fields: QueryableFields?) {
        let list = ProblemList()
        var isDirectory = false
        if !FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) {
            list.add(.configMissing, file: path, "The file or app directory does not exist.", fix: "Check the path.")
        } else if isDirectory {
            // A query needs no app id, so a directory without one serves as well.
            let app = try AppDirectory.load(at: path, appID: "query")
            return (app.schema, app.queryableFields)
        }
        guard list.problems.isEmpty, let text = AppDirectory.text(of: path, named: path, list) else {
            throw AppDirectoryError(problems: list.problems)
        }
        return (try read(text, file: path), nil)
    }

    /// - Parameter file: The file name for problems.
    package static func read(_ text: String, file: String) throws(AppDirectoryError) -> Schema {
        let list = ProblemList()
        do throws(JSONError) {
            let schema = read(ConfigNode(file: file, json: try JSON.located(Array(text.utf8)), list: list), list)
            if list.problems.isEmpty { return schema }
        } catch {
            list.add(
                .badJSON, file: file, line: error.line, column: error.column, "This is not valid JSON: \(error.problem).",
                fix: "The file is {\"schemas\": [a JSON schema for each class], \"relationships\": {…}}.")
        }
        throw AppDirectoryError(problems: list.problems.sorted { ($0.line, $0.column) < ($1.line, $1.column) })
    }

    private static func read(_ node: ConfigNode, _ list: ProblemList) -> Schema {
        let members = node.members(allowing: ["schemas", "relationships", "asymmetric_tables"])
        guard let classes = members.required("schemas", of: node) else { return Schema([]) }
        return SchemaReader(list: list).read(
            classes.elements, relationships: members["relationships"], asymmetric: members["asymmetric_tables"])
    }
}
