#include "cmd/cmd.h"

/* The scripts ask 'fuseplan --complete WORD...' (complete.c) for the words that the last one can
 * be. Its lines are "word<TAB>description", or ":files<TAB>before<TAB>path" and ":dirs...", for
 * which the shell completes the path and puts the text before it. */

/* Bash splits words at '=' and ':' and completes what is behind the last one, so that the script
 * cuts that much off each answer. */
static const char bash[] =
    "# fuseplan completion for bash: source <(fuseplan completion bash)\n"
    "_fuseplan()\n"
    "{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} words word cut rest before path\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=('')\n"
    "    word=${words[${#words[@]} - 1]}\n"
    "    cut=\n"
    "    [[ $word == *[=:]* ]] && cut=${word%\"${word##*[=:]}\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        word=${line%%$'\\t'*} rest=${line#*$'\\t'}\n"
    "        case $word in\n"
    "        :files | :dirs)\n"
    "            before=${rest%%$'\\t'*} path=${rest#*$'\\t'}\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r word; do\n"
    "                word=$before$word\n"
    "                COMPREPLY+=(\"${word#\"$cut\"}\")\n"
    "            done < <(if [ \"$word\" = :dirs ]; then compgen -d -- \"$path\"; else compgen -f "
    "-- "
    "\"$path\"; fi)\n"
    "            ;;\n"
    "        *)\n"
    "            [[ $word == *[=:] ]] && compopt -o nospace 2>/dev/null\n"
    "            COMPREPLY+=(\"${word#\"$cut\"}\")\n"
    "            ;;\n"
    "        esac\n"
    "    done < <(\"${words[0]}\" --complete \"${words[@]:1}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _fuseplan fuseplan\n";

static const char zsh[] =
    "#compdef fuseplan\n"
    "# fuseplan completion for zsh: fuseplan completion zsh > DIR/_fuseplan, DIR in $fpath\n"
    "_fuseplan()\n"
    "{\n"
    "    local -a texts shown fields\n"
    "    local line\n"
    "    for line in \"${(@f)$($words[1] --complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\"; "
    "do\n"
    "        fields=(\"${(@ps:\\t:)line}\")\n"
    "        case $fields[1] in\n"
    "        :files) compset -P \"${(b)fields[2]}\"; _files ;;\n"
    "        :dirs) compset -P \"${(b)fields[2]}\"; _files -/ ;;\n"
    "        ?*) texts+=(\"$fields[1]\"); shown+=(\"${fields[1]}  ${fields[2]}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (($#texts == 0)) || compadd -Q -l -d shown -a texts\n"
    "}\n"
    "compdef _fuseplan fuseplan\n"
    "[ \"$funcstack[1]\" != _fuseplan ] || _fuseplan # loaded by the first use\n";

static const char fish[] =
    "# fuseplan completion for fish: fuseplan completion fish | source\n"
    "function __fuseplan_complete\n"
    "    set -l words (commandline -opc)\n"
    "    for line in ($words[1] --complete $words[2..-1] (commandline -ct) 2>/dev/null)\n"
    "        set -l fields (string split \\t -- $line)\n"
    "        switch $fields[1]\n"
    "            case :files\n"
    "                printf '%s\\n' $fields[2](__fish_complete_path $fields[3])\n"
    "            case :dirs\n"
    "                printf '%s\\n' $fields[2](__fish_complete_directories $fields[3])\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c fuseplan -f -a '(__fuseplan_complete)'\n";

/* ---- the command ----------------------------------------------------------------------------- */

static const struct {
    const char *name, *script;
} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

static void list_shells(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", shells[i].name);
}

static int run(const struct options *o, struct status *st)
{
    int at = words_find("shell", o->operands[0], list_shells, st);
    if (at < 0)
        return -1;
    fputs(shells[at].script, stdout);
    return EXIT_SUCCESS;
}

const struct command cmd_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "Print a completion script for a shell",
    .options = OPT(HELP),
    .examples = "source <(fuseplan completion bash)\n"
                "mkdir -p ~/.zfunc && fuseplan completion zsh >~/.zfunc/_fuseplan\n"
                "fuseplan completion fish | source   # in fish",
    .words = list_shells,
    .run = run,
};
