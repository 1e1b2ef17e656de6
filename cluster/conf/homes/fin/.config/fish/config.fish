# fish reads this for every shell, also for `ssh host command`. The same as conf/profile.sh does for bash.
set -gx SCRATCH /scratch/(id -un)
for group in (id -Gn | string split ' ')
    if not set -q PROJECT; and test -d /project/$group
        set -gx PROJECT /project/$group
    end
end
set -gx PATH $PATH /harbour/code/bin
set -gx MODULEPATH /harbour/modules
set -gx LMOD_PAGER none
source /usr/share/lmod/lmod/init/fish
